"""The order in which the clients work off a batch. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from feedmill_client import Article, calls

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LEASE = timedelta(minutes=5)


def make_article(md5: str, lease_id: UUID) -> Article:
    return Article(
        md5=md5,
        feed_id=1,
        entry_id=md5,
        url="http://news.example/",
        title="",
        body="",
        html=None,
        content_quality="full",
        content_hash=f"hash of {md5}",
        published_at=None,
        updated_at=None,
        author=None,
        categories=[],
        enclosures=[],
        language=None,
        flags=[],
        duplicate_of=None,
        revision=0,
        retry_count=0,
        expiries=0,
        created_at=NOW,
        claimed_until=NOW,
        lease_id=lease_id,
    )


def play(raised: dict[str, BaseException], stop_after: int = 99, lease: timedelta = LEASE) -> list[str]:
    """Work off the articles a, b and c; return the steps. A renewal succeeds for all but c."""
    done: list[str] = []
    lease_id = uuid4()
    articles = [make_article(md5, lease_id) for md5 in "abc"]
    work = calls.work_off(articles, lease, lambda: len(done) >= stop_after)
    step = calls.advance(work, None)
    while step is not None:
        answer: object = None
        if isinstance(step, Article):
            done.append(step.md5)
            answer = raised.get(step.md5)
        else:
            given = step.arguments[0]
            done.append(f"{step.method} {' '.join(article.md5 for article in given)}")
            answer = [article for article in given if article.md5 != "c"]
        step = calls.advance(work, answer)
    return done


def test_what_went_well_is_acknowledged_together_and_what_failed_at_once() -> None:
    assert play({}) == ["a", "b", "c", "ack a b c"]
    assert play({"b": ValueError()}) == ["a", "b", "fail b", "c", "ack a c"]


def test_a_stop_releases_what_was_not_begun() -> None:
    assert play({}, stop_after=1) == ["a", "ack a", "release b c"]
    assert play({}, stop_after=0) == ["release a b c"]


def test_an_interruption_blames_no_article() -> None:
    assert play({"b": KeyboardInterrupt()}) == ["a", "b", "ack a", "release b c"]


def test_what_was_lost_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr(calls, "monotonic", lambda: next(clock))
    assert play({}) == ["a", "ack a", "renew b c", "b", "ack b"]


@pytest.mark.parametrize(("attempt", "least", "most"), [(0, 0.1, 0.2), (3, 0.8, 1.6), (50, 5, 10)])
def test_pauses_grow_and_are_bounded(attempt: int, least: float, most: float) -> None:
    assert least <= calls.back_off(attempt) <= most
