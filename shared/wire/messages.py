"""The wire: every message that services exchange, and how it becomes bytes.

One kind, one frozen class, one versioned name (`KIND`), one JSON form, one decode error. The golden files in
`tests/contract/golden/` hold that form; a change that breaks them is a new version of the kind.

Versions of services meet while they are replaced, and messages of one wait for the other. So a field that is new has a
default, for messages that are older than it; a field that we don't know is left out by `decode`, since whoever
reads a message of a later version has to do what it did before that field; and of a closed list (outcomes, reasons), a
value that we don't know is read as the one that stands in for it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args
from uuid import UUID, uuid4

from pydantic import AwareDatetime, BaseModel, ConfigDict, FailFast, Field, JsonValue, PlainSerializer, ValidationError
from pydantic_core import ErrorDetails

from shared.errors import DecodeError, MessageTooLarge
from shared.wire.bodies import DECODED_MULTIPLE, has_more_values, unpack

COMPRESS_ABOVE_BYTES = 4096
"""Bodies above this are gzipped; below it the header costs more than it saves."""

MAX_MESSAGE_BYTES = 15 * 1024 * 1024
"""What FEEDMILL_MAX_MESSAGE_BYTES is unless it is set."""

FULLY_CHECKED_VALUES = 20_000
"""Of a message with more values unknown fields are left out without a word: each would be an error of its own."""


def _to_wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Moment = Annotated[AwareDatetime, PlainSerializer(_to_wire, return_type=str, when_used="json")]
"""An aware datetime; on the wire always UTC with a trailing Z."""


class OutcomeClass(StrEnum):
    """What an outcome means to those who don't know it: which of the few kinds of outcomes it belongs to."""

    SUCCESS = "success"
    """The server answered with the feed or with "you have it already"."""
    SOFT = "soft"
    """It may be well by itself before long."""
    HARD = "hard"
    """Somebody has to do something."""
    UNASKED = "unasked"
    """Nothing was asked of the server: the job was dropped or put off."""


class Outcome(StrEnum):
    """How one attempt at a feed ended. One per attempt: in the log table, the metric and the log line."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    UNCHANGED = "unchanged"
    SOFT_ERROR = "soft_error"
    GAVE_UP = "gave_up"
    HARD_ERROR = "hard_error"
    GONE = "gone"
    THROTTLED = "throttled"
    BLOCKED = "blocked"
    TOO_LARGE = "too_large"
    NOT_A_FEED = "not_a_feed"
    UNPARSEABLE = "unparseable"
    STALE = "stale"
    SKIPPED = "skipped"

    @property
    def outcome_class(self) -> OutcomeClass:
        """What goes with it for those who don't know it."""
        return _CLASSES.get(self, OutcomeClass.HARD)

    @property
    def is_success(self) -> bool:
        """True if the server answered with the feed or with "you have it already"."""
        return self.outcome_class is OutcomeClass.SUCCESS

    @property
    def is_attempt(self) -> bool:
        """False if nothing was asked of the server: the job was dropped or put off."""
        return self.outcome_class is not OutcomeClass.UNASKED


_CLASSES = {
    Outcome.FETCHED: OutcomeClass.SUCCESS,
    Outcome.NOT_MODIFIED: OutcomeClass.SUCCESS,
    Outcome.UNCHANGED: OutcomeClass.SUCCESS,
    Outcome.SOFT_ERROR: OutcomeClass.SOFT,
    Outcome.GAVE_UP: OutcomeClass.SOFT,
    Outcome.THROTTLED: OutcomeClass.SOFT,
    Outcome.STALE: OutcomeClass.UNASKED,
    Outcome.SKIPPED: OutcomeClass.UNASKED,
}


FIRST_OUTCOMES = frozenset(
    {
        Outcome.FETCHED,
        Outcome.NOT_MODIFIED,
        Outcome.UNCHANGED,
        Outcome.SOFT_ERROR,
        Outcome.GAVE_UP,
        Outcome.HARD_ERROR,
        Outcome.GONE,
        Outcome.THROTTLED,
        Outcome.BLOCKED,
        Outcome.TOO_LARGE,
        Outcome.NOT_A_FEED,
        Outcome.UNPARSEABLE,
        Outcome.STALE,
        Outcome.SKIPPED,
    }
)
"""What every version knows. An outcome that is added does not come in here."""


Reason = Literal["due", "manual", "batch"]
"""Why a feed is fetched."""

ContentQuality = Literal["full", "summary", "stub", "title_only"]
"""How much of an article its feed gives."""

T = TypeVar("T")

Many = Annotated[tuple[T, ...], FailFast()]
"""A list of which the first wrong element is reported: a million wrong ones would be a million errors."""


class Record(BaseModel):
    """Frozen, strict about unknown fields where it is made, aware datetimes only."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Listed:
    """A field that has one of a closed list of texts, which a later version may make longer."""

    known: frozenset[str]
    stand_in: Callable[[Mapping[str, Any]], str]
    """From a record, as it came, to the value to read in place of one that we don't know."""


class Message(Record):
    """A record that travels on its own. Subclasses name their `KIND`."""

    KIND: ClassVar[str]
    LISTED: ClassVar[Mapping[str, Listed]] = {}
    """By the name of the field, as `decode` tells names."""
    MOST_BYTES: ClassVar[int | None] = None
    """Of its JSON; None: as many as the caller of `unpack` allows."""
    MOST_VALUES: ClassVar[int] = 1_500_000
    """Members and elements in its JSON. Each takes some 100 bytes of memory, however short it is."""

    def encode(self) -> tuple[bytes, str | None]:
        """Return the body and its content encoding (`gzip`, or None for plain JSON)."""
        body = self.model_dump_json().encode()
        if len(body) <= COMPRESS_ABOVE_BYTES:
            return body, None
        return gzip.compress(body, compresslevel=1, mtime=0), "gzip"

    def headers(self) -> dict[str, str | int]:
        """Return what a person should see of this message in the management UI without opening the body."""
        return {}

    @classmethod
    def decode(
        cls,
        body: bytes,
        content_encoding: str | None = None,
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        on_unknown: Callable[[set[str]], None] | None = None,
    ) -> Self:
        """Return the message in `body`, which may be of a later version: what this one doesn't know is passed over.

        If there is such a thing, `on_unknown` is called with the names (`entries.summary`, `outcome='merged'`).

        Raises:
            DecodeError: the body is no JSON of this kind; names the field and the reason.
            MessageTooLarge: it unfolds to more than a service may take.
        """
        return cls.read(cls.unpack(body, content_encoding, max_message_bytes=max_message_bytes), on_unknown=on_unknown)

    @classmethod
    def unpack(cls, body: bytes, content_encoding: str | None, *, max_message_bytes: int) -> bytes:
        """Return the JSON in `body`, which may have several times the `max_message_bytes` that are published.

        Raises:
            DecodeError: it is not packed as it says.
            MessageTooLarge: it has more bytes or values than a service may take.
        """
        most = DECODED_MULTIPLE * max_message_bytes
        plain = unpack(body, content_encoding, min(most, cls.MOST_BYTES or most))
        if has_more_values(plain, cls.MOST_VALUES):
            raise MessageTooLarge(f"the body holds more than {cls.MOST_VALUES} values")
        return plain

    @classmethod
    def read(cls, plain: bytes, *, on_unknown: Callable[[set[str]], None] | None = None) -> Self:
        """Return the message that this JSON is. See `decode`."""
        unknown: set[str] = set()
        try:
            if not has_more_values(plain, FULLY_CHECKED_VALUES):
                return cls.model_validate_json(plain)
        except ValidationError as error:
            unknown = {_field_name(item["loc"]) for item in _problems(error) if item["type"] == "extra_forbidden"}
        try:
            message = cls.model_validate_json(plain, extra="ignore")
        except ValidationError as error:
            if not any(item["type"] in _NOT_IN_LIST for item in _problems(error)):
                raise cls._refusal(error) from error
            plain, unlisted = cls._replace_unlisted(plain)
            unknown |= unlisted
            try:
                message = cls.model_validate_json(plain, extra="ignore")
            except ValidationError as second:
                raise cls._refusal(second) from second
        if unknown and on_unknown:
            on_unknown(unknown)
        return message

    @classmethod
    def _replace_unlisted(cls, plain: bytes) -> tuple[bytes, set[str]]:
        """Return the JSON with texts that we know in place of those that we don't, and what these were."""
        record, unlisted = json.loads(plain), set[str]()
        for name, listed in cls.LISTED.items():
            *path, field = name.split(".")
            for holder in _holders(record, path):
                value = holder.get(field)
                if isinstance(value, str) and value not in listed.known:
                    unlisted.add(f"{name}={value[:50]!r}")
                    holder[field] = listed.stand_in(holder)
        return json.dumps(record).encode(), unlisted

    @classmethod
    def _refusal(cls, error: ValidationError) -> DecodeError:
        first, *others = _problems(error)
        where = ".".join(str(part) for part in first["loc"]) or "body"
        return DecodeError(f"not a {cls.KIND} message: {where}: {first['msg']} ({len(others) + 1} error(s))")


_NOT_IN_LIST = frozenset({"enum", "literal_error"})
"""pydantic's names for a value that is not one of those that are listed."""


def _problems(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _holders(record: Any, path: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects that stand at a path through objects and lists."""
    if isinstance(record, list):
        for item in record:
            yield from _holders(item, path)
    elif isinstance(record, dict) and path:
        yield from _holders(record.get(path[0]), path[1:])
    elif isinstance(record, dict):
        yield record


def _field_name(place: tuple[int | str, ...]) -> str:
    """Return where a field stands, the same for all entries of a list."""
    return ".".join(part for part in place if isinstance(part, str))


class Detour(Record):
    """Where the redirects of a fetch have led so far. Its next request waits for the turn of another host."""

    url: str
    """The next URL to ask."""
    visited: Many[str]
    """Those asked before, oldest first."""
    moved_to: str | None = None
    """Where an all-permanent prefix of redirects led."""
    permanent: bool = False
    """Whether every redirect so far was permanent."""
    started_at: Moment
    spent_seconds: float = Field(ge=0)
    """What the requests so far took of the fetch's deadline."""


class FetchFeed(Message):
    """Command: fetch this feed once. Holds all that the fetcher may know; it has no database."""

    KIND: ClassVar[str] = "feed.fetch.v1"
    LISTED: ClassVar[Mapping[str, Listed]] = {"reason": Listed(frozenset(get_args(Reason)), lambda _: "due")}
    MOST_BYTES: ClassVar[int | None] = 512 * 1024
    MOST_VALUES: ClassVar[int] = 20_000

    feed_id: int
    url: str
    source_type: str = "feed"
    source_config: dict[str, JsonValue] = Field(default_factory=dict)
    etag: str | None = None
    """Verbatim as the server sent it, quotes and `W/` included."""
    last_modified: str | None = None
    """Verbatim as the server sent it."""
    validators_url: str | None = None
    """The URL that gave the validators (after redirects); they are sent to no other."""
    body_hash: str | None = None
    """SHA-256 (hex) of the last body that was read; the same body again is `unchanged` and not parsed."""
    since: Moment | None = None
    """The cursor: newest publication time delivered so far. Errs on inclusion."""
    group: str
    """Politeness group: host[:port], lower-case, IDNA."""
    claim_id: UUID
    not_after: Moment
    """The claim's deadline. Past it the job is `stale`: the scheduler has issued the feed again."""
    attempt: int = Field(default=0, ge=0)
    """Failed attempts before this one."""
    skips: int = Field(default=0, ge=0)
    """How often the job was put off because its host was down or throttled, without an attempt."""
    detour: Detour | None = None
    """A fetch under way: goes on here instead of at `url`."""
    reason: Reason = "due"
    dry_run: bool = False
    probe: bool = Field(default=False, exclude_if=lambda probe: not probe)
    """Leave the validators out this once, to see whether the server's 304 have been true."""
    queued_at: Moment

    def headers(self) -> dict[str, str | int]:
        """Feed, attempt and skips."""
        return {"feed_id": self.feed_id, "attempt": self.attempt, "skips": self.skips}


class Enclosure(Record):
    """A file that comes with an entry (podcast episode, image)."""

    url: str
    type: str | None = None
    length: int | None = None


class Entry(Record):
    """One item of a feed, normalised: what becomes an article in `pending_articles`."""

    entry_id: str
    """The feed's own identifier (guid, atom:id, JSON Feed id), else the URL, else the md5."""
    id_is_given: bool = Field(default=False, exclude_if=lambda is_given: not is_given)
    """`entry_id` is the feed's own, though it may equal the URL. Fetchers before this field don't say so."""
    url: str
    """Absolute, http or https; empty if the entry has none."""
    title: str
    """Plain text, one line."""
    body: str
    """Plain text, paragraphs kept apart by newlines."""
    html: str | None = Field(default=None, exclude_if=lambda html: html is None)
    """The body as HTML that is safe to show, if it was kept and has markup (docs/reference/configuration.md).

    Else it is not sent, so that older readers of this version take the message.
    """
    content_quality: ContentQuality
    published_at: Moment | None = None
    updated_at: Moment | None = None
    author: str | None = None
    categories: Many[str] = ()
    enclosures: Many[Enclosure] = ()
    language: str | None = None
    md5: str = Field(pattern=r"^[0-9a-f]{32}$")
    """MD5(url + title), lower-case hex: the name of the article if it is new (docs/explanation/articles.md)."""
    content_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the normalised text, hex: tells a changed article from a repeated one."""
    flags: Many[str] = ()
    """What the reader had to guess or to cut, e.g. `date_guessed`, `date_clamped` (docs/reference/queues.md)."""

    @classmethod
    def of_valid(cls, fields: dict[str, Any]) -> Self:
        """Return the entry with these fields, which are all of them and valid: nothing is checked, nothing copied.

        For the reader, which makes every field itself. It takes a fifth of the time of the checks; pydantic's own
        `model_construct` takes longer than they do.
        """
        entry = cls.__new__(cls)
        set_attribute = object.__setattr__
        set_attribute(entry, "__dict__", fields)
        set_attribute(entry, "__pydantic_fields_set__", set(fields))
        set_attribute(entry, "__pydantic_extra__", None)
        set_attribute(entry, "__pydantic_private__", None)
        return entry


class FeedInfo(Record):
    """What the feed says of itself."""

    title: str | None = None
    site_url: str | None = None
    language: str | None = None


class ServerHints(Record):
    """What the server and the feed ask of our pace."""

    max_age_seconds: float | None = None
    """From Cache-Control: max-age, else Expires minus the response's own Date."""
    retry_after_seconds: float | None = None
    """From Retry-After, delta or HTTP-date, at most 24 h."""
    ttl_seconds: float | None = None
    """From RSS ttl or sy:updatePeriod / sy:updateFrequency."""
    skip_hours: Many[int] = ()
    """UTC hours, 0–23."""
    skip_days: Many[int] = ()
    """Monday is 0."""


def _outcome_like(result: Mapping[str, Any]) -> Outcome:
    """Return the outcome that does for an unknown one what its class asks for, and nothing beyond that."""
    match result.get("outcome_class"):
        case OutcomeClass.SUCCESS:
            return Outcome.FETCHED if result.get("entries") else Outcome.NOT_MODIFIED
        case OutcomeClass.HARD:
            return Outcome.HARD_ERROR
        case OutcomeClass.UNASKED:
            return Outcome.STALE if result.get("final") else Outcome.SKIPPED
        case _:
            return Outcome.SOFT_ERROR


class FeedFetched(Message):
    """Event: one attempt at a feed, with *all* of its results, so that they commit together or not at all."""

    KIND: ClassVar[str] = "feed.fetched.v1"
    LISTED: ClassVar[Mapping[str, Listed]] = {
        "outcome": Listed(frozenset(Outcome), _outcome_like),
        "outcome_class": Listed(frozenset(OutcomeClass), lambda _: OutcomeClass.SOFT),
        "reason": Listed(frozenset(get_args(Reason)), lambda _: "due"),
        "entries.content_quality": Listed(frozenset(get_args(ContentQuality)), lambda _: "summary"),
    }

    result_id: UUID = Field(default_factory=uuid4)
    """One per attempt: the writer's key against writing the same attempt twice."""
    feed_id: int
    url: str
    """The URL that was asked, which is the one that the validators belong to."""
    claim_id: UUID
    claim_until: Moment | None = None
    """Not final: the new deadline of the claim, since a retry follows."""
    reason: Reason = "due"
    probe: bool = Field(default=False, exclude_if=lambda probe: not probe)
    """The validators were left out on purpose."""
    outcome: Outcome
    outcome_class: OutcomeClass | None = Field(default=None, exclude_if=lambda kind: kind is None)
    """What an outcome is to those who don't know it. Sent with outcomes that are not of the first version."""
    final: bool
    """False if the same job comes back (`soft_error`, `skipped`); the feed's state waits for that one."""
    attempt: int = Field(default=0, ge=0)
    status: int | None = None
    final_url: str | None = None
    moved_to: str | None = None
    """Where an all-permanent prefix of redirects (301, 308) ended."""
    etag: str | None = None
    last_modified: str | None = None
    body_hash: str | None = None
    hints: ServerHints = ServerHints()
    not_before: Moment | None = None
    """The server asked us not to come earlier (Retry-After)."""
    queued_at: Moment
    started_at: Moment
    elapsed_seconds: float = Field(ge=0)
    wire_bytes: int = Field(default=0, ge=0)
    decoded_bytes: int = Field(default=0, ge=0)
    tier: str | None = None
    """Which reader took the body: `strict`, `lenient`, `json` or `salvage`."""
    feed: FeedInfo = FeedInfo()
    entries: Many[Entry] = ()
    error_class: str | None = None
    error: str | None = Field(default=None, max_length=500)

    def encode(self) -> tuple[bytes, str | None]:
        """See `Message.encode`."""
        if self.outcome in FIRST_OUTCOMES or self.outcome_class is self.outcome.outcome_class:
            return super().encode()
        return self.model_copy(update={"outcome_class": self.outcome.outcome_class}).encode()

    def headers(self) -> dict[str, str | int]:
        """Feed, attempt, outcome and the number of entries (by which the writer sizes its batches)."""
        return {
            "feed_id": self.feed_id,
            "attempt": self.attempt,
            "outcome": self.outcome.value,
            "entries": len(self.entries),
        }
