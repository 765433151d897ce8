"""Every alert fires in its case, and not in similar ones, and that for each installation by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitoring.cases import CASES, Case, Series, installation, within
from tests.monitoring.promtool import Expected, check, needs_promtool, run_promtool
from tests.monitoring.rules import ALERTS, INSTALLATIONS, read_rules

FEW = (
    "FeedmillAbsent",
    "FeedmillFetcherDown",
    "FeedmillNotReady",
    "FeedmillQueueNotConsumed",
    "FeedmillBrokerUnseen",
)


def test_every_alert_has_a_case() -> None:
    named = [rule.name for rule in read_rules() if rule.kind == "alert"]
    assert list(CASES) == [name for name in named if name != "FeedmillUnwatched"]


def side_by_side(name: str, case: Case) -> Series:
    """Return the series of two installations: what the alert is for, and what comes close."""
    said = installation(case)
    return within(f"{name}-ill", {**said, **case.also, **case.fires}) | within(
        f"{name}-well", {**said, **case.also, **case.silent}
    )


@needs_promtool
@pytest.mark.parametrize("minutes", sorted({case.minutes for case in CASES.values()}))
def test_every_alert_fires_in_the_namespace_that_is_ill_and_not_in_the_one_that_is_well(
    minutes: int, tmp_path: Path
) -> None:
    cases = {name: case for name, case in CASES.items() if case.minutes == minutes}
    series = {key: value for name, case in cases.items() for key, value in side_by_side(name, case).items()}
    expected = [Expected(name, case.at * minutes, [f"{name}-ill"], among=f"{name}-.+") for name, case in cases.items()]
    check([ALERTS], series, expected, tmp_path, minutes)


@needs_promtool
@pytest.mark.parametrize("name", FEW)
def test_without_namespaces_all_belongs_together(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    said = installation(case)
    check([ALERTS], {**said, **case.also, **case.fires}, [Expected(name, case.at, [""])], tmp_path)
    check([ALERTS], {**said, **case.also, **case.silent}, [Expected(name, case.at, [])], tmp_path)


@needs_promtool
def test_the_installation_of_compose_is_watched_and_without_any_an_alert_says_so(tmp_path: Path) -> None:
    check([ALERTS], {}, [Expected("FeedmillUnwatched", 10, [""]), Expected("FeedmillAbsent", 10, [])], tmp_path)
    check(
        [INSTALLATIONS, ALERTS],
        {},
        [Expected("FeedmillUnwatched", 10, []), Expected("FeedmillAbsent", 10, [""])],
        tmp_path,
    )


SWITCHED: Series = {
    'feedmill_build_info{component="writer"}': "1x60",
    'feedmill_build_info{component="scheduler"}': "1x10 stale",
    'feedmill_build_info{component="fetcher"}': "1x10 stale",
    'rabbitmq_detailed_queue_messages_ready{queue="fetcher.03"}': "5000x60",
    'rabbitmq_detailed_queue_consumers{queue="fetcher.03"}': "2x10 0x50",
    'kube_cronjob_created{cronjob="feedmill-batch"}': "0x60",
}
"""Scheduler and fetchers are gone, and have left jobs behind."""


@needs_promtool
def test_a_planned_change_to_batches_alarms_nobody(tmp_path: Path) -> None:
    planned = {'feedmill:installation{fetch_type="queue-fetcher"}': "1x8 stale"}
    planned['feedmill:installation{fetch_type="batch-fetcher"}'] = "_x9 1x60"
    missed = {'feedmill:installation{fetch_type="queue-fetcher"}': "1x60"}
    names = ("FeedmillSchedulerDown", "FeedmillFetcherDown", "FeedmillQueueNotConsumed", "FeedmillFetcherBacklog")
    expected = [Expected(name, 55, ["missed"]) for name in names]
    expected.append(Expected(".+", 55, [], among="planned"))
    series = {**within("planned", {**SWITCHED, **planned}), **within("missed", {**SWITCHED, **missed})}
    check([ALERTS], series, expected, tmp_path)


@needs_promtool
def test_prometheus_takes_the_configuration() -> None:
    checked = run_promtool("check", "config", "--lint=all", "--lint-fatal", str(ALERTS.parent / "prometheus.yml"))
    assert f"{len(read_rules())} rules found" in checked
