"""The rules of the pipeline's health: each with a picture that breaks it, and one that just does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.admin.health.alarms.measured import Contact
from services.admin.health.diagnosis import QueueLevel, Thresholds
from services.admin.health.pipeline.picture import Attempts, Batches, Pace, Picture, Quality, Queues, TierQuality
from services.admin.health.pipeline.rules import Verdict, judge_all, judge_quality, judge_stages
from services.admin.health.pipeline.status import Status

HEALTHY, UNKNOWN, DEGRADED, DOWN = Status

QUEUES = Queues(
    shards={"fetcher.00": QueueLevel(5, 1), "fetcher.01": QueueLevel(0, 1)},
    behind={"writer": QueueLevel(3, 1)},
    retry={"fetcher": 7, "writer": 0},
    dead={"fetcher": 0, "writer": 0},
)
PACE = Pace(has_feeds=True, due=2, late_seconds=0.5, silence_seconds=0.0, idle_seconds=1.0)
ATTEMPTS = Attempts(
    3600.0,
    outcomes={"fetched": 60, "not_modified": 30, "soft_error": 5, "hard_error": 5, "skipped": 40},
    tiers={"strict": 55, "lenient": 5},
)
QUALITY = Quality(day={"strict": TierQuality(100, 90, 50)}, week={"strict": TierQuality(700, 630, 350)})

PICTURE = Picture(
    limits=Thresholds(fetcher_high_water=5000, writer_high_water=2000, group_jobs=400, silence_seconds=1800.0),
    services=("fetcher", "writer"),
    queues=QUEUES,
    pace=PACE,
    attempts=ATTEMPTS,
    quality=QUALITY,
)


def shards(*levels: tuple[int, int] | None, writer: tuple[int, int] = (0, 1)) -> Queues:
    return replace(
        QUEUES,
        shards={f"fetcher.{n:02d}": QueueLevel(*level) if level else None for n, level in enumerate(levels)},
        behind={"writer": QueueLevel(*writer)},
    )


def verdict(at: Picture) -> Verdict:
    return judge_all(judge_stages(at), judge_quality(at))


def test_a_pipeline_at_work_is_healthy() -> None:
    assert verdict(PICTURE) == Verdict(HEALTHY)
    assert list(judge_stages(PICTURE)) == ["scheduler", "fetcher", "parser", "writer"]


@pytest.mark.parametrize(
    ("level", "is_on", "status", "said"),
    [
        (QueueLevel(3, 1), True, HEALTHY, ""),
        (QueueLevel(3, 1), False, HEALTHY, ""),  # what was on its way
        (QueueLevel(3, 0), True, DEGRADED, "each goes on without it after 10 minutes"),
        (QueueLevel(3, 0), False, DEGRADED, "each goes on without it after 10 minutes"),
        (QueueLevel(0, 0), True, DEGRADED, "no enricher is running"),
        (QueueLevel(0, 0), False, HEALTHY, ""),
        (None, True, DEGRADED, "no enricher is running"),
        (None, False, HEALTHY, ""),
        (QueueLevel(2000, 1), True, DEGRADED, "2,000 results wait in `enricher`"),
    ],
)
def test_a_stage_that_articles_can_do_without_is_never_down(
    level: QueueLevel | None, is_on: bool, status: Status, said: str
) -> None:
    queues = replace(QUEUES, behind={"enricher": level, **QUEUES.behind})
    at = replace(PICTURE, services=("fetcher", "enricher", "writer"), optional={"enricher": is_on}, queues=queues)
    verdict = judge_stages(at)["enricher"]
    assert verdict.status is status
    assert said in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    ("late", "idle", "status"),
    [
        (60.0, 1.0, HEALTHY),
        (61.0, 1.0, DEGRADED),
        (301.0, 300.0, DEGRADED),
        (300.0, 301.0, DEGRADED),
        (301.0, 301.0, DOWN),
        (301.0, None, DOWN),
    ],
)
def test_a_scheduler_that_is_late_is_degraded_and_one_that_issues_nothing_is_down(
    late: float, idle: float | None, status: Status
) -> None:
    at = replace(PICTURE, pace=replace(PACE, late_seconds=late, idle_seconds=idle))
    assert judge_stages(at)["scheduler"].status is status
    assert verdict(at).status is status


def test_a_scheduler_that_waits_for_the_fetchers_is_healthy_and_they_are_degraded() -> None:
    pace = replace(PACE, late_seconds=9999.0, idle_seconds=None)
    at = replace(PICTURE, pace=pace, queues=shards((4999, 1)))
    assert (judge_stages(at)["scheduler"].status, judge_stages(at)["fetcher"].status) == (DOWN, HEALTHY)
    at = replace(at, queues=shards((4000, 1), (1000, 1)))
    assert (judge_stages(at)["scheduler"].status, judge_stages(at)["fetcher"].status) == (HEALTHY, DEGRADED)


def test_without_feeds_nobody_is_late() -> None:
    at = replace(PICTURE, pace=replace(PACE, has_feeds=False, late_seconds=9999.0, idle_seconds=None))
    assert verdict(at).status is HEALTHY


@pytest.mark.parametrize(
    ("age", "status"), [(7200.0, HEALTHY), (7201.0, DEGRADED), (86400.0, DEGRADED), (86401.0, DOWN)]
)
def test_where_batches_fetch_the_age_of_the_last_one_counts(age: float, status: Status) -> None:
    pace = replace(PACE, late_seconds=9999.0, idle_seconds=None)
    at = replace(PICTURE, pace=pace, queues=shards((0, 0)), batches=Batches(1, age))
    assert judge_stages(at)["scheduler"].status is status
    assert judge_stages(at)["fetcher"].status is HEALTHY


@pytest.mark.parametrize(("level", "age"), [((1, 0), 7201.0), ((0, 1), 10.0)])
def test_a_batch_beside_fetchers_or_jobs_that_it_did_not_take_excuses_nobody(
    level: tuple[int, int], age: float
) -> None:
    pace = replace(PACE, late_seconds=9999.0, idle_seconds=None)
    at = replace(PICTURE, pace=pace, queues=shards(level), batches=Batches(1, age))
    assert judge_stages(at)["scheduler"].status is DOWN


def test_retries_that_former_fetchers_left_are_the_next_batchs() -> None:
    at = replace(PICTURE, queues=shards((0, 0), (3, 0)), batches=Batches(1, 1800.0))
    assert judge_stages(at)["fetcher"].status is HEALTHY


@pytest.mark.parametrize(
    ("queues", "status"),
    [
        (shards((0, 1), (9, 1)), HEALTHY),
        (shards((0, 1), (9, 0)), DEGRADED),
        (shards((0, 0), (0, 0)), DEGRADED),
        (shards((0, 0), (1, 0)), DOWN),
        (shards(None, None), DOWN),
        (shards((0, 0), (1, 0), writer=(1999, 1)), DOWN),
        (shards((0, 0), (1, 0), writer=(2000, 1)), HEALTHY),
    ],
)
def test_fetchers_that_nobody_sees_are_down_unless_they_pause_for_the_writer(queues: Queues, status: Status) -> None:
    assert judge_stages(replace(PICTURE, queues=queues))["fetcher"].status is status


@pytest.mark.parametrize(("silence", "status"), [(1800.0, HEALTHY), (1801.0, DOWN)])
def test_fetchers_without_any_success_are_down(silence: float, status: Status) -> None:
    at = replace(PICTURE, pace=replace(PACE, silence_seconds=silence))
    assert judge_stages(at)["fetcher"].status is status


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ({"fetched": 10, "soft_error": 5, "hard_error": 5}, HEALTHY),
        ({"fetched": 9, "soft_error": 6, "hard_error": 5}, DEGRADED),
        ({"fetched": 9, "soft_error": 10}, HEALTHY),
        ({"fetched": 20, "skipped": 900}, HEALTHY),
    ],
)
def test_fetchers_that_mostly_fail_are_degraded(outcomes: dict[str, int], status: Status) -> None:
    at = replace(PICTURE, attempts=replace(ATTEMPTS, outcomes=outcomes))
    assert judge_stages(at)["fetcher"].status is status


@pytest.mark.parametrize(("read", "unparseable", "status"), [(90, 10, HEALTHY), (90, 11, DEGRADED), (0, 19, HEALTHY)])
def test_a_parser_that_can_not_read_a_tenth_is_degraded(read: int, unparseable: int, status: Status) -> None:
    at = replace(PICTURE, attempts=Attempts(3600.0, {"fetched": read, "unparseable": unparseable}, {"strict": read}))
    assert judge_stages(at)["parser"].status is status


@pytest.mark.parametrize(
    ("level", "status"),
    [((1999, 1), HEALTHY), ((2000, 1), DEGRADED), ((0, 0), DEGRADED), ((1, 0), DOWN), (None, DOWN)],
)
def test_a_writer_that_nobody_sees_is_down_and_one_that_is_slow_degraded(
    level: tuple[int, int] | None, status: Status
) -> None:
    at = replace(PICTURE, queues=replace(QUEUES, behind={"writer": QueueLevel(*level) if level else None}))
    assert judge_stages(at)["writer"].status is status
    assert verdict(at).status is status


def test_every_stage_of_the_chain_is_judged() -> None:
    queues = replace(QUEUES, behind={"enricher": QueueLevel(1, 0), "writer": QueueLevel(0, 1)})
    at = replace(PICTURE, services=("fetcher", "enricher", "writer"), queues=queues)
    judged = judge_stages(at)
    assert list(judged) == ["scheduler", "fetcher", "parser", "enricher", "writer"]
    assert (judged["enricher"].status, judged["writer"].status) == (DOWN, HEALTHY)
    assert "is the enricher running" in judged["enricher"].reasons[0]


def test_without_a_broker_all_is_down_and_the_reason_is_said_once() -> None:
    at = replace(PICTURE, queues=None, broker=Contact("no answer"))
    assert verdict(at) == Verdict(DOWN, ("RabbitMQ can't be asked: no answer",))
    statuses = {name: judged.status for name, judged in judge_stages(at).items()}
    assert statuses == {"scheduler": DOWN, "fetcher": DOWN, "parser": HEALTHY, "writer": DOWN}


def test_without_a_database_fetchers_go_on() -> None:
    at = replace(PICTURE, pace=None, attempts=None, quality=None, database=Contact("no answer"))
    assert verdict(at) == Verdict(DOWN, ("PostgreSQL can't be asked: no answer",))
    statuses = {name: judged.status for name, judged in judge_stages(at).items()}
    assert statuses == {"scheduler": DOWN, "fetcher": HEALTHY, "parser": UNKNOWN, "writer": DOWN}


@pytest.mark.parametrize(
    ("day", "status"),
    [
        (TierQuality(100, 71, 31), HEALTHY),
        (TierQuality(100, 69, 50), DEGRADED),
        (TierQuality(100, 90, 29), DEGRADED),
        (TierQuality(100, 100, 100), HEALTHY),
        (TierQuality(19, 0, 0), HEALTHY),
    ],
)
def test_articles_that_lost_a_fifth_of_dates_or_texts_are_degraded(day: TierQuality, status: Status) -> None:
    at = replace(PICTURE, quality=replace(QUALITY, day={"strict": day}))
    assert judge_quality(at).status is status
    assert verdict(at).status is status


LABELLED = TierQuality(700, 630, 350, enriched=700, language=690, topic=490)


@pytest.mark.parametrize(
    ("day", "status"),
    [
        (TierQuality(100, 90, 50, enriched=100, language=80, topic=51), HEALTHY),
        (TierQuality(100, 90, 50, enriched=100, language=77, topic=51), DEGRADED),
        (TierQuality(100, 90, 50, enriched=100, language=98, topic=49), DEGRADED),
        (TierQuality(100, 90, 50, enriched=19), HEALTHY),
        (TierQuality(100, 90, 50), HEALTHY),
    ],
)
def test_articles_that_lost_a_fifth_of_languages_or_topics_are_degraded(day: TierQuality, status: Status) -> None:
    at = replace(PICTURE, quality=Quality(day={"strict": day}, week={"strict": LABELLED}))
    assert judge_quality(at).status is status


def test_shares_of_labels_are_of_articles_that_an_enricher_saw() -> None:
    shares = TierQuality(100, 90, 50, 50, 25, 10, duplicate=8, duplicate_title=2, duplicate_text=5).shares
    assert (shares["enriched"], shares["language"], shares["topic"]) == (0.5, 0.5, 0.2)
    assert (shares["duplicate_address"], shares["duplicate_title"], shares["duplicate_text"]) == (0.01, 0.02, 0.05)
    assert TierQuality(0, 0, 0).shares["language"] is None


def test_a_new_installation_has_no_week_to_compare_with() -> None:
    at = replace(PICTURE, quality=Quality(day={"strict": TierQuality(100, 0, 0)}, week={}))
    assert judge_quality(at).status is HEALTHY


def test_the_worst_reason_comes_first() -> None:
    at = replace(
        PICTURE,
        pace=replace(PACE, late_seconds=100.0),
        queues=replace(QUEUES, behind={"writer": QueueLevel(4, 0)}),
    )
    assert [reason[:12] for reason in verdict(at).reasons] == ["nobody reads", "feeds are cl"]


def test_rates_and_failures_leave_jobs_without_a_request_out() -> None:
    assert (ATTEMPTS.results, ATTEMPTS.fetches, ATTEMPTS.read) == (140, 100, 60)
    assert ATTEMPTS.failures == {"soft": 5, "hard": 5}
    assert replace(ATTEMPTS, window_seconds=300.0).per_hour(100) == 1200.0
