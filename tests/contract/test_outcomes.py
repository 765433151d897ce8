"""A new outcome takes one row in the table, and a service that does not know it yet treats it as its class."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from shared.wire.outcomes import BackOff, Outcome, OutcomeClass, OutcomeRow, words_of
from shared.wire.results import FeedFetched
from tests.monitoring.rules import ROOT

ROW = '    TOY = "toy_outcome", _HARD, True, _B.SIX_HOURS, True, False, "behind a paywall"\n'

PROGRAM = """
import asyncio, json
from shared.wire.outcomes import Outcome, words_of
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_result
from tests.unit.fetcher.harness import Harness
from tests.unit.writer.test_feed_state import after, feed

TOY = Outcome("toy_outcome")

async def fetch():
    harness = Harness()
    harness.reader.answer = lambda *_: make_result(outcome=TOY, status=402)
    return [message for _, message in await harness.handle()]

(fetched,) = asyncio.run(fetch())
state = after(feed(), outcome=TOY)
body, _ = fetched.encode()
print(json.dumps({
    "body": body.decode(),
    "is_read_back": FeedFetched.decode(body).outcome is TOY,
    "is_final": fetched.final,
    "failures": state.failures,
    "last_outcome": state.last_outcome,
    "waits_hours": (state.next_fetch_at - NOW).total_seconds() / 3600,
    "is_enabled": state.enabled,
    "words": words_of("toy_outcome"),
}))
"""


@pytest.fixture(scope="module")
def told_by_later_version(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what a version of Feedmill does that differs from this one only by the new row."""
    later = tmp_path_factory.mktemp("later")
    for package in ("services", "shared", "tests"):
        shutil.copytree(
            ROOT / package, later / package, ignore=shutil.ignore_patterns("__pycache__", "golden", "inputs")
        )
    table = later / "shared" / "wire" / "outcomes.py"
    source = table.read_text(encoding="utf-8")
    table.write_text(re.sub(r"(?m)^( +GONE = .*\n)", rf"\1{ROW}", source), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=later,
        env=os.environ | {"PYTHONPATH": str(later)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_one_row_is_all_that_a_new_outcome_needs(told_by_later_version: dict[str, object]) -> None:
    told = dict(told_by_later_version)
    told.pop("body")
    assert 4.5 <= float(str(told.pop("waits_hours"))) <= 7
    assert told == {
        "is_read_back": True,
        "is_final": True,
        "failures": 1,
        "last_outcome": "toy_outcome",
        "is_enabled": True,
        "words": "behind a paywall",
    }


def test_a_service_of_this_version_takes_it_as_its_class(told_by_later_version: dict[str, object]) -> None:
    unknown: set[str] = set()
    read = FeedFetched.decode(str(told_by_later_version["body"]).encode(), on_unknown=unknown.update)
    assert (read.outcome, read.outcome_class) == (Outcome.HARD_ERROR, OutcomeClass.HARD)
    assert unknown == {"outcome='toy_outcome'"}
    assert words_of("toy_outcome") == "toy_outcome"


def test_a_forgotten_column_fails_at_import() -> None:
    with pytest.raises(TypeError, match="words"):

        class Short(OutcomeRow):
            TOY = "toy_outcome", OutcomeClass.HARD, True, BackOff.AN_HOUR, True, False


@pytest.mark.parametrize(
    ("kind", "back_off"),
    [
        (OutcomeClass.HARD, BackOff.USUAL),
        (OutcomeClass.SUCCESS, BackOff.AN_HOUR),
        (OutcomeClass.UNASKED, BackOff.AS_ASKED),
        (OutcomeClass.SOFT, BackOff.STILL_DUE),
    ],
)
def test_a_back_off_that_contradicts_the_class_fails_at_import(kind: OutcomeClass, back_off: BackOff) -> None:
    with pytest.raises(ValueError, match="does not fit the class"):

        class Wrong(OutcomeRow):
            TOY = "toy_outcome", kind, True, back_off, True, False, "behind a paywall"


def test_the_index_of_feeds_in_trouble_knows_every_outcome_that_is_asked_to_wait() -> None:
    """`services/scheduler/silence.sql` names the same literal as the index: another one needs a migration."""
    asked = [outcome for outcome in Outcome if outcome.back_off is BackOff.AS_ASKED]
    assert asked == [Outcome.THROTTLED]
    for path in ("services/scheduler/silence.sql", "shared/database/migrations/0009_hosts.sql"):
        assert "last_outcome = 'throttled'" in (ROOT / path).read_text(encoding="utf-8")


def test_the_dashboard_counts_every_hard_outcome_as_broken() -> None:
    dashboard = ROOT / "k8s" / "components" / "monitoring" / "dashboards" / "feedmill-pipeline.json"
    (shown,) = set(re.findall(r'outcome=~\\"(hard_error\|[^"\\]*)\\"', dashboard.read_text(encoding="utf-8")))
    assert set(shown.split("|")) == {o.value for o in Outcome if o.outcome_class is OutcomeClass.HARD}
