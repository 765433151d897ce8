"""The wire. A change that breaks a golden file breaks messages that are in the queues during an upgrade."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import ValidationError

from shared.errors import DecodeError
from shared.wire.enrichment import Enrichment, Entity, Mention, Sketch
from shared.wire.envelope import COMPRESS_ABOVE_BYTES, Message
from shared.wire.jobs import FetchFeed, ResumeState
from shared.wire.outcomes import Outcome, OutcomeClass
from shared.wire.results import Enclosure, FeedFetched, FeedInfo, ServerHints
from tests.factories import NOW, make_entry, make_job, make_result

GOLDEN = Path(__file__).parent / "golden"


def everything_filled_in() -> list[Message]:
    return [
        make_job(
            source_config={"timeout": 5, "insecure": False, "note": None},
            etag='W/"a\\b"',
            last_modified="Sat, 21 Nov 2026 12:00:00 GMT",
            validators_url="http://news.example/feed",
            body_hash="0" * 64,
            since=NOW - timedelta(days=1),
            attempt=2,
            skips=1,
            resume=ResumeState(
                url="http://www.news.example/feed",
                visited=("http://news.example/feed",),
                moved_to="http://www.news.example/feed",
                permanent=True,
                started_at=NOW,
                spent_seconds=0.5,
            ),
            reason="manual",
            dry_run=True,
            probe=True,
            date_order="month",
        ),
        make_result(
            result_id=UUID("00000000-0000-4000-8000-000000000002"),
            claim_until=NOW + timedelta(hours=2),
            probe=True,
            final_url="http://www.news.example/feed",
            moved_to="http://www.news.example/feed",
            etag='"e"',
            last_modified="Sat, 21 Nov 2026 12:00:00 GMT",
            body_hash="1" * 64,
            hints=ServerHints(
                max_age_seconds=60.0, retry_after_seconds=1.5, ttl_seconds=3600.0, skip_hours=(0, 23), skip_days=(5, 6)
            ),
            not_before=NOW + timedelta(minutes=5),
            wire_bytes=100,
            decoded_bytes=1000,
            tier="lenient",
            feed=FeedInfo(title="News", site_url="http://news.example/", language="en"),
            date_order="day",
            entries=(
                make_entry(
                    1,
                    title="Grüße, 世界 🌍",
                    html='<p>The <a href="http://news.example/" rel="noopener noreferrer nofollow">text</a></p>',
                    updated_at=NOW,
                    author="A. Writer",
                    categories=("a", "b"),
                    enclosures=(Enclosure(url="http://news.example/1.mp3", type="audio/mpeg", length=1000),),
                    language="de",
                    id_is_given=True,
                    flags=("date_clamped",),
                    enrichment=Enrichment(
                        language="de",
                        language_confidence=0.99,
                        topic="politics",
                        topic_confidence=0.75,
                        entities=(
                            Entity(
                                name="World",
                                kind="place",
                                id="Q16502",
                                mentions=(Mention(field="title", start=7, end=9),),
                            ),
                        ),
                        sketch=Sketch(
                            count=5,
                            head=b"\0\1\2\xff",
                            rest=b"\1\1\2\xff",
                            numbers=b"\3\0\0\0",
                            names=b"\4\0\0\0",
                            title=b"\5\0\0\0",
                            words=b"\6\0\0\1",
                            told=b"\7\0",
                            is_telling=True,
                        ),
                        flags=("text_cut",),
                    ),
                ),
            ),
            error_class="none",
            error="none",
        ),
    ]


@pytest.mark.parametrize("message", everything_filled_in(), ids=lambda message: message.KIND)
def test_a_message_looks_on_the_wire_as_it_always_did(message: Message) -> None:
    golden = json.loads((GOLDEN / f"{message.KIND}.json").read_text(encoding="utf-8"))
    assert json.loads(message.model_dump_json()) == golden


@pytest.mark.parametrize("message", everything_filled_in(), ids=lambda message: message.KIND)
def test_a_golden_message_is_read_as_what_was_written(message: Message) -> None:
    assert type(message).decode((GOLDEN / f"{message.KIND}.json").read_bytes()) == message


def test_html_that_is_not_kept_is_not_sent_so_that_older_writers_take_the_message() -> None:
    assert b'"html"' not in make_result(entries=(make_entry(1),)).encode()[0]


def test_an_entry_that_no_enricher_saw_is_sent_as_before_so_that_older_writers_take_the_message() -> None:
    assert b"enrichment" not in make_result(entries=(make_entry(1),)).encode()[0]


def test_every_kind_has_a_golden_file_and_every_file_a_kind() -> None:
    kinds = {cls.KIND for cls in Message.__subclasses__()}
    assert kinds == {path.stem for path in GOLDEN.glob("*.json")} == {m.KIND for m in everything_filled_in()}


def test_a_large_message_is_compressed_and_comes_back_whole() -> None:
    message = make_result(entries=tuple(make_entry(n, body="text " * 1000) for n in range(5)))
    body, encoding = message.encode()
    assert (encoding, len(body) < COMPRESS_ABOVE_BYTES * 2) == ("gzip", True)
    assert FeedFetched.decode(body, encoding) == message


def test_a_small_message_stays_legible() -> None:
    body, encoding = make_job().encode()
    assert encoding is None
    assert json.loads(body)["feed_id"] == 1


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"", None, "JSON"),
        (b"\xff\x00", None, "JSON"),
        (b"[]", None, "object"),
        (b"{}", None, "feed_id"),
        (b"{}", "br", "'br' is unknown"),
        (b"not gzip", "gzip", "gzip"),
        (make_result(error="x" * 500, url="y" * 5000).encode()[0][:-4], "gzip", "cut short"),
        (make_job().model_dump_json().replace('"feed_id":1', '"feed_id":"one"').encode(), None, "feed_id"),
        (
            make_job().model_dump_json().replace('"feed_id":1', '"feed_id":"one","new":1').encode(),
            None,
            r"feed_id.*1 err",
        ),
        (make_job().model_dump_json().replace("12:00:00Z", "12:00:00").encode(), None, "timezone"),
    ],
)
def test_a_body_that_is_no_message_is_a_decode_error_that_says_why(
    body: bytes, encoding: str | None, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason):
        FetchFeed.decode(body, encoding)


EARLIER = sorted(GOLDEN.glob("*/*.json"))


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_messages_of_earlier_versions_are_read_in_full(path: Path) -> None:
    kind = next(cls for cls in Message.__subclasses__() if path.stem == cls.KIND)
    sent = json.loads(path.read_text(encoding="utf-8"))
    unknown: set[str] = set()
    read = json.loads(kind.decode(path.read_bytes(), on_unknown=unknown.update).model_dump_json())
    assert not unknown
    assert is_within(sent, read)


def test_each_kind_is_there_as_earlier_versions_sent_it() -> None:
    assert {path.stem for path in EARLIER} == {message.KIND for message in everything_filled_in()}


def is_within(part: object, whole: object) -> bool:
    """Return whether `whole` says all that `part` does, and maybe more."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_within(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(is_within, part, whole))
    return part == whole


@pytest.mark.parametrize("message", everything_filled_in(), ids=lambda message: message.KIND)
def test_fields_of_a_later_version_are_left_out_and_reported(message: Message) -> None:
    body = json.loads(message.model_dump_json())
    body["since_tomorrow"] = {"some": ["thing"]}
    inner = body["entries"][0] if isinstance(message, FeedFetched) else body["detour"]
    inner["too"] = 1
    unknown: set[str] = set()
    assert type(message).decode(json.dumps(body).encode(), on_unknown=unknown.update) == message
    assert unknown == {"since_tomorrow", "entries.too" if isinstance(message, FeedFetched) else "detour.too"}


def from_tomorrow(**changes: object) -> bytes:
    return json.dumps(json.loads(make_result(entries=(make_entry(1),)).model_dump_json()) | changes).encode()


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, Outcome.SOFT_ERROR),
        ({"outcome_class": "soft"}, Outcome.SOFT_ERROR),
        ({"outcome_class": "hard"}, Outcome.HARD_ERROR),
        ({"outcome_class": "success"}, Outcome.FETCHED),
        ({"outcome_class": "success", "entries": []}, Outcome.NOT_MODIFIED),
        ({"outcome_class": "unasked"}, Outcome.STALE),
        ({"outcome_class": "unasked", "final": False}, Outcome.SKIPPED),
        ({"outcome_class": "whatever"}, Outcome.SOFT_ERROR),
        ({"outcome_class": "whatever", "new": 1}, Outcome.SOFT_ERROR),
    ],
)
def test_an_outcome_of_a_later_version_is_read_as_its_class(changes: dict[str, object], outcome: Outcome) -> None:
    unknown: set[str] = set()
    read = FeedFetched.decode(from_tomorrow(outcome="merged", **changes), on_unknown=unknown.update)
    assert read.outcome is outcome
    assert "outcome='merged'" in unknown


def test_a_list_that_has_grown_is_no_dead_letter() -> None:
    entry = json.loads(make_entry(1).model_dump_json()) | {"content_quality": "transcript", "flags": ["new"]}
    read = FeedFetched.decode(from_tomorrow(reason="backfill", tier="new", entries=[entry]))
    assert (read.reason, read.tier, read.entries[0].content_quality) == ("due", "new", "summary")
    assert read.entries[0].flags == ("new",)
    job = json.loads(make_job().model_dump_json()) | {"reason": "backfill", "source_type": "sitemap"}
    assert FetchFeed.decode(json.dumps(job).encode()).reason == "due"


@pytest.mark.parametrize("changes", [{"outcome": 5}, {"outcome": None}, {"outcome": "merged", "feed_id": "x"}])
def test_an_invalid_value_is_not_taken_for_a_later_version(changes: dict[str, object]) -> None:
    with pytest.raises(DecodeError, match=r"outcome|feed_id"):
        FeedFetched.decode(from_tomorrow(**changes))


def test_an_outcome_goes_with_its_class_unless_every_version_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"outcome_class" not in make_result().encode()[0]
    for outcome in Outcome:
        monkeypatch.setattr(outcome, "is_original", False)
        body, encoding = make_result(outcome=outcome).encode()
        assert FeedFetched.decode(body, encoding).outcome_class is outcome.outcome_class


def test_every_outcome_has_the_class_that_its_name_says() -> None:
    classes = {kind: {outcome for outcome in Outcome if outcome.outcome_class is kind} for kind in OutcomeClass}
    assert classes[OutcomeClass.SUCCESS] == {Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.UNCHANGED}
    assert classes[OutcomeClass.UNASKED] == {Outcome.STALE, Outcome.SKIPPED}
    assert classes[OutcomeClass.SOFT] == {Outcome.SOFT_ERROR, Outcome.GAVE_UP, Outcome.THROTTLED}


def test_a_slip_of_ours_is_not_taken_for_a_later_version() -> None:
    with pytest.raises(ValidationError, match="since_tomorrow"):
        make_job(since_tomorrow=1)


def test_moments_travel_as_utc() -> None:
    moment = datetime.fromisoformat("2026-11-21T14:00:00+02:00")
    assert json.loads(make_job(since=moment).model_dump_json())["since"] == "2026-11-21T12:00:00Z"
