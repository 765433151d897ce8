"""The alarms: each with a picture that breaks it, in words that name the cause and lead to the page."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.admin.feed_health.counts import in_use
from services.admin.feed_health.rule import Word
from services.admin.health.alarms.advice import ADVICE
from services.admin.health.alarms.alarm import Alarm, Severity, is_critical
from services.admin.health.alarms.causes import Attempt, commonest, count_causes, find_cause
from services.admin.health.alarms.measured import Contact, DatabaseState, Failures, FeedsInUse, Waiting
from services.admin.health.alarms.rules import find_alarms
from services.admin.health.diagnosis import QueueLevel
from services.admin.health.pipeline.picture import Attempts, Batches, Picture
from services.admin.health.pipeline.rules import judge_all, judge_quality, judge_stages
from services.admin.health.pipeline.status import Status
from tests.unit.admin.test_health_rules import ATTEMPTS, PACE, PICTURE, QUEUES, shards

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
STATE = DatabaseState(schema=18, needs_schema=18)
WELL = replace(PICTURE, now=NOW, machine="mill", state=STATE)
RESOLVER = Failures(120, {"name resolution fails": 120})
DOCS = Path(__file__).parents[3] / "docs"


def only(at: Picture) -> Alarm:
    (alarm,) = find_alarms(at)
    return alarm


def test_if_all_is_well_nothing_rings() -> None:
    assert find_alarms(WELL) == []
    assert judge_all(judge_stages(WELL), judge_quality(WELL), []).status is Status.HEALTHY


@pytest.mark.parametrize(
    ("at", "name", "said"),
    [
        (replace(WELL, broker=Contact("no answer", NOW), queues=None), "broker_away", "RabbitMQ can't be asked: no"),
        (replace(WELL, broker_alarm="low on disk"), "broker_alarm", "takes no messages: it is low on disk"),
        (replace(WELL, database=Contact("no answer"), state=None), "database_away", "PostgreSQL can't be asked: no"),
        (replace(WELL, state=replace(STATE, schema=0)), "tables_missing", "the tables are missing"),
        (replace(WELL, state=replace(STATE, schema=17)), "tables_missing", "are those of migration 17; this version"),
        (replace(WELL, state=replace(STATE, is_full=True)), "database_full", "nothing can be written"),
        (replace(WELL, state=replace(STATE, is_read_only=True)), "database_read_only", "it takes no changes"),
        (
            replace(WELL, state=replace(STATE, is_read_only=True, is_standby=True)),
            "database_read_only",
            "it is a standby",
        ),
        (
            replace(WELL, pace=replace(PACE, late_seconds=301.0, idle_seconds=None)),
            "scheduler_missing",
            "due for up to 5 minutes and nobody claims them",
        ),
        (replace(WELL, queues=shards((7, 0))), "fetchers_missing", "where 7 jobs wait: is a fetcher running?"),
        (replace(WELL, queues=shards((0, 1), writer=(9, 0))), "writer_missing", "where 9 results wait"),
        (replace(WELL, pace=replace(PACE, silence_seconds=2700.0)), "silent", "fetched successfully for 45 minutes"),
        (
            replace(WELL, pace=replace(PACE, silence_seconds=2700.0), failures=RESOLVER),
            "silent",
            "for 45 minutes: name resolution fails for all of 120 hosts",
        ),
    ],
)
def test_what_stops_the_pipeline_is_critical(at: Picture, name: str, said: str) -> None:
    alarm = only(at)
    assert (alarm.name, alarm.severity) == (name, Severity.CRITICAL)
    assert said in alarm.sentence
    assert is_critical([alarm])
    assert judge_all(judge_stages(at), judge_quality(at), [alarm]).status is Status.DOWN


@pytest.mark.parametrize(
    ("at", "name", "said"),
    [
        (replace(WELL, figures_trouble="it took 2 s"), "database_slow", "answers, but not in time: it took 2 s"),
        (replace(WELL, queues=shards((0, 0))), "fetchers_missing", "is a fetcher running?"),
        (replace(WELL, queues=shards((0, 1), writer=(2000, 1))), "writer_behind", "2,000 results wait in `writer`"),
        (
            replace(WELL, attempts=Attempts(3600.0, {"soft_error": 20}, {}), failures=Failures(9, {"odd": 8})),
            "most_fail",
            "100% of the last fetches failed: odd for 8 of 9 hosts",
        ),
        (replace(WELL, feeds=FeedsInUse(15, 13)), "most_feeds_fail", "13 of 15 feeds fail"),
        (replace(WELL, feeds=FeedsInUse(5, 5)), "most_feeds_fail", "all of 5 feeds fail"),
        (replace(WELL, waiting=Waiting(41_000, 90_001.0)), "nobody_drains", "41,000 articles wait for a consumer"),
        (
            replace(WELL, state=replace(STATE, ahead_seconds=7260.0)),
            "clock_off",
            "the clock of mill is 2 hours ahead of PostgreSQL's",
        ),
        (replace(WELL, state=replace(STATE, ahead_seconds=-6.0)), "clock_off", "is 6 seconds behind PostgreSQL's"),
        (replace(WELL, state=replace(STATE, log_ahead_seconds=600.0)), "database_clock_back", "back by 10 minutes"),
    ],
)
def test_what_makes_it_late_is_a_warning(at: Picture, name: str, said: str) -> None:
    alarm = only(at)
    assert (alarm.name, alarm.severity) == (name, Severity.WARNING)
    assert said in alarm.sentence
    assert judge_all(judge_stages(at), judge_quality(at), [alarm]).status is Status.DEGRADED


@pytest.mark.parametrize(
    "at",
    [
        replace(WELL, state=replace(STATE, ahead_seconds=4.9, log_ahead_seconds=4.9)),
        replace(WELL, waiting=Waiting(10**6, 90_000.0)),
        replace(WELL, pace=replace(PACE, silence_seconds=1800.0)),
        replace(WELL, failures=RESOLVER),
        replace(WELL, feeds=FeedsInUse(4, 4)),
        replace(WELL, feeds=FeedsInUse(26, 13)),
    ],
)
def test_what_comes_close_rings_nothing(at: Picture) -> None:
    assert find_alarms(at) == []


def test_it_is_said_since_when() -> None:
    assert only(replace(WELL, broker=Contact("no", NOW - timedelta(hours=1)))).since == NOW - timedelta(hours=1)
    assert only(replace(WELL, pace=replace(PACE, silence_seconds=2700.0))).since == NOW - timedelta(minutes=45)


def test_what_waits_for_a_server_is_not_blamed() -> None:
    late = replace(PACE, late_seconds=9999.0, idle_seconds=None, silence_seconds=9999.0)
    for at, name in (
        (replace(WELL, pace=late, broker_alarm="low on memory"), "broker_alarm"),
        (replace(WELL, pace=late, state=replace(STATE, is_full=True)), "database_full"),
        (replace(WELL, pace=late), "scheduler_missing"),
    ):
        assert only(at).name == name


@pytest.mark.parametrize(
    ("at", "name"),
    [
        (replace(WELL, queues=shards((0, 1), writer=(15, 0))), "writer_missing"),
        (replace(WELL, state=replace(STATE, is_read_only=True)), "database_read_only"),
        (replace(WELL, state=replace(STATE, is_full=True)), "database_full"),
    ],
)
def test_results_that_nobody_writes_are_no_silence(at: Picture, name: str) -> None:
    at = replace(at, pace=replace(PACE, silence_seconds=2700.0), failures=RESOLVER)
    assert only(at).name == name
    assert judge_stages(at)["fetcher"].status is Status.HEALTHY


def test_a_writer_that_reads_excuses_no_silence() -> None:
    at = replace(WELL, queues=shards((0, 1), writer=(15, 1)), pace=replace(PACE, silence_seconds=2700.0))
    assert only(at).name == "silent"


def test_the_servers_come_first_and_nothing_is_said_twice() -> None:
    at = replace(
        WELL,
        broker=Contact("away"),
        queues=None,
        database=Contact("away"),
        state=replace(STATE, ahead_seconds=90.0),
        services=("fetcher", "enricher", "writer"),
    )
    assert [alarm.name for alarm in find_alarms(at)] == ["broker_away", "database_away", "clock_off"]


def quiet(silence: float, between: float) -> Picture:
    """Return a picture of batches: this silence now, and the last run ended so long ago."""
    pace = replace(PACE, silence_seconds=silence, late_seconds=silence, idle_seconds=None)
    return replace(WELL, pace=pace, queues=shards((0, 0)), batches=Batches(1, between))


@given(st.floats(0, 7200), st.floats(0, 1800))
def test_between_two_runs_of_batch_nothing_rings_if_the_last_one_succeeded(between: float, before: float) -> None:
    assert find_alarms(quiet(between + before, between)) == []


def test_runs_of_batch_in_which_nothing_succeeds_ring() -> None:
    assert only(quiet(3 * 1800.0 + 1, 1800.0 - 1)).name == "silent"


@given(
    has_feeds=st.booleans(),
    silence=st.floats(0, 10**6),
    late=st.floats(0, 10**6),
    idle=st.none() | st.floats(0, 10**6),
    ready=st.integers(0, 6000),
    consumers=st.integers(0, 2),
)
def test_a_silence_never_goes_unheard(
    has_feeds: bool, silence: float, late: float, idle: float | None, ready: int, consumers: int
) -> None:
    """Whatever else is wrong, something critical rings; and without a silence the alarm `silent` does not."""
    pace = replace(PACE, has_feeds=has_feeds, silence_seconds=silence, late_seconds=late, idle_seconds=idle)
    alarms = find_alarms(replace(WELL, pace=pace, queues=shards((ready, consumers))))
    if silence > 1800.0:
        assert is_critical(alarms)
    else:
        assert "silent" not in {alarm.name for alarm in alarms}


@pytest.mark.parametrize(
    ("error_class", "error", "words"),
    [
        ("connect", "cannot resolve a.example: [Errno -3] Temporary failure in name resolution", "name resolution"),
        ("connect", "the name a.example was not resolved in time", "name resolution fails"),
        ("timeout", "no resolver was free to look up a.example in time", "name resolution fails"),
        ("connect", "cannot connect to 192.0.2.1 port 443: [Errno 101] Network is unreachable", "network is unreach"),
        ("connect", "cannot connect to 192.0.2.1 port 443: [Errno 113] No route to host", "network is unreachable"),
        ("connect", "cannot connect to 192.0.2.1 port 80: [Errno 111] Connection refused", "connections are refused"),
        ("connect", "cannot connect to 192.0.2.1 port 443: timed out", "connections time out"),
        ("connect", "the certificate of a.example is not to be trusted: certificate is not yet valid", "certificates"),
        ("connect", "no TLS with a.example: WRONG_VERSION_NUMBER", "no TLS connection comes about"),
        ("connect", "something new", "connections fail"),
        ("timeout", "the server was silent for 15 s", "servers do not answer in time"),
        ("blocked", "a.example has the address 10.0.0.1, which is not public", "names lead to private addresses"),
        ("http_503", "the server answered 503", "servers answer with status 503"),
        ("http_407", "the server answered 407", "a proxy wants a login"),
        ("not_a_feed", "a page of HTML", "pages come in place of feeds"),
        ("odd", "odd", "fetching fails (odd)"),
        (None, None, "fetching fails (nobody says why)"),
    ],
)
def test_a_cause_is_found_by_the_words_of_the_log(error_class: str | None, error: str | None, words: str) -> None:
    assert words in find_cause(error_class, error).words


def failed(host: int, error: str = "cannot resolve it") -> Attempt:
    return Attempt(f"h{host}.example", "connect", error)


def test_hosts_are_counted_and_not_attempts() -> None:
    found = count_causes([failed(1), failed(1), failed(2), failed(2, "refused: Connection refused")], ["h9.example"])
    assert found == Failures(3, {"name resolution fails": 2, "connections are refused": 1})
    cause = commonest(found)
    assert cause is not None
    assert cause.words == "name resolution fails for 2 of 3 hosts"
    assert "is there a resolver?" in cause.action


@pytest.mark.parametrize(
    ("hosts", "others", "words"), [(1, 0, "for 1 host"), (2, 0, "for all of 2 hosts"), (1, 1, "for 1 of 2 hosts")]
)
def test_the_commonest_cause_says_how_many_hosts(hosts: int, others: int, words: str) -> None:
    found = count_causes([failed(n) for n in range(hosts)], [f"well{n}" for n in range(others)])
    cause = commonest(found)
    assert cause is not None
    assert cause.words == f"name resolution fails {words}"


def test_what_a_minority_of_hosts_has_in_common_is_no_cause() -> None:
    failures = Failures(20, {"name resolution fails": 2, "connections time out": 2, "connections are refused": 1})
    at = replace(WELL, pace=replace(PACE, silence_seconds=2700.0), failures=failures)
    assert only(at).sentence.endswith("for 45 minutes: for various reasons")
    assert only(at).action == ADVICE["silent"][0]
    half = commonest(Failures(20, {"name resolution fails": 10}))
    assert half is not None
    assert half.words == "name resolution fails for 10 of 20 hosts"


@pytest.mark.parametrize(
    ("alarm", "words", "other"), [("low on memory", "memory", "disk"), ("low on disk", "disk", "memory")]
)
def test_a_broker_gets_what_it_is_low_on(alarm: str, words: str, other: str) -> None:
    action = only(replace(WELL, broker_alarm=alarm)).action
    assert words in action
    assert other not in action


def test_feeds_that_are_not_polled_or_not_asked_yet_do_not_count() -> None:
    words = {Word.HEALTHY: 1, Word.QUIET: 1, Word.FAILING: 13, Word.NEW: 40, Word.DISABLED: 40, Word.GONE: 9}
    assert in_use(words) == FeedsInUse(15, 13)


def test_without_failures_there_is_no_cause() -> None:
    assert commonest(Failures()) is None
    assert commonest(count_causes([], ["h1.example"])) is None


@pytest.mark.parametrize("name", ADVICE)
def test_an_alarm_leads_to_a_section_of_the_documentation(name: str) -> None:
    file, _, anchor = ADVICE[name][1].partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_failure_of_the_pictures_has_advice() -> None:
    broken = replace(WELL, queues=replace(QUEUES, behind={"other": QueueLevel(2000, 0)}), services=("fetcher", "other"))
    assert {alarm.name for alarm in find_alarms(broken)} == {"stage_missing", "stage_behind"}
    assert ATTEMPTS.fetches == 100
