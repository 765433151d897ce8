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
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import reduce
from operator import getitem
from typing import Annotated, Any, ClassVar, Literal, Self
from uuid import UUID, uuid4

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, ValidationError
from pydantic_core import ErrorDetails

from shared.errors import DecodeError

COMPRESS_ABOVE_BYTES = 4096
"""Bodies above this are gzipped; below it the header costs more than it saves."""

MAX_DECODED_BYTES = 256 * 1024 * 1024
"""A compressed body may not unfold to more than this (a stray bomb must not take the process down)."""


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


class Record(BaseModel):
    """Frozen, strict about unknown fields where it is made, aware datetimes only."""

    model_config = ConfigDict(frozen=True, extra="forbid")


StandIn = Callable[[Mapping[str, Any]], str]
"""From a record, as it came, to the value to read in place of one that we don't know."""


class Message(Record):
    """A record that travels on its own. Subclasses name their `KIND`."""

    KIND: ClassVar[str]
    STAND_INS: ClassVar[Mapping[str, StandIn]] = {}
    """By the name of a field that has one of a closed list of texts, as `decode` tells names."""

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
        cls, body: bytes, content_encoding: str | None = None, *, on_unknown: Callable[[set[str]], None] | None = None
    ) -> Self:
        """Return the message in `body`, which may be of a later version: what this one doesn't know is passed over.

        If there is such a thing, `on_unknown` is called with the names (`entries.summary`, `outcome='merged'`).

        Raises:
            DecodeError: the body is no JSON of this kind; names the field and the reason.
        """
        plain = _decompress(body, content_encoding)
        try:
            return cls.model_validate_json(plain)
        except ValidationError as error:
            problems = error.errors(include_url=False)
            unknown = [problem for problem in problems if cls._is_unknown(problem)]
            if len(unknown) < len(problems):
                first = next(problem for problem in problems if problem not in unknown)
                where = ".".join(str(part) for part in first["loc"]) or "body"
                raise DecodeError(
                    f"not a {cls.KIND} message: {where}: {first['msg']} ({len(problems) - len(unknown)} error(s))"
                ) from error
        if on_unknown:
            on_unknown({_name_unknown(problem) for problem in unknown})
        return cls.model_validate_json(cls._replace_unknown(plain, unknown), extra="ignore")

    @classmethod
    def _is_unknown(cls, problem: ErrorDetails) -> bool:
        """Whether a later version may have sent this on purpose."""
        if problem["type"] == "extra_forbidden":
            return True
        return problem["type"] in _NOT_IN_LIST and _is_replaced(cls, problem) and isinstance(problem["input"], str)

    @classmethod
    def _replace_unknown(cls, plain: bytes, unknown: Sequence[ErrorDetails]) -> bytes:
        """Return the JSON with values that we know in place of those that we don't."""
        places = [problem["loc"] for problem in unknown if problem["type"] in _NOT_IN_LIST]
        if not places:
            return plain
        record = json.loads(plain)
        for *path, field in places:
            holder = reduce(getitem, path, record)
            holder[field] = cls.STAND_INS[_field_name((*path, field))](holder)
        return json.dumps(record).encode()


_NOT_IN_LIST = frozenset({"enum", "literal_error"})
"""pydantic's names for a value that is not one of those that are listed."""


def _is_replaced(kind: type[Message], problem: ErrorDetails) -> bool:
    return _field_name(problem["loc"]) in kind.STAND_INS


def _name_unknown(problem: ErrorDetails) -> str:
    name = _field_name(problem["loc"])
    return f"{name}={problem['input'][:50]!r}" if problem["type"] in _NOT_IN_LIST else name


def _field_name(place: tuple[int | str, ...]) -> str:
    """Return where a field stands, the same for all entries of a list."""
    return ".".join(part for part in place if isinstance(part, str))


def _decompress(body: bytes, content_encoding: str | None) -> bytes:
    if not content_encoding:
        return body
    if content_encoding != "gzip":
        raise DecodeError(f"content encoding {content_encoding!r} is unknown; expected gzip or none")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = stream.decompress(body, MAX_DECODED_BYTES)
    except zlib.error as error:
        raise DecodeError(f"the body is not the gzip stream that it is announced as: {error}") from error
    if not stream.eof:
        raise DecodeError(f"the gzip stream is cut short or unfolds to more than {MAX_DECODED_BYTES} bytes")
    return plain


class Detour(Record):
    """Where the redirects of a fetch have led so far. Its next request waits for the turn of another host."""

    url: str
    """The next URL to ask."""
    visited: tuple[str, ...]
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
    STAND_INS: ClassVar[Mapping[str, StandIn]] = {"reason": lambda _: "due"}

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
    reason: Literal["due", "manual", "batch"] = "due"
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
    """The body as HTML that is safe to show, if it was kept and has markup (docs/configuration.md); else not sent, so
    that older readers of this version take the message."""
    content_quality: Literal["full", "summary", "stub", "title_only"]
    published_at: Moment | None = None
    updated_at: Moment | None = None
    author: str | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    language: str | None = None
    md5: str = Field(pattern=r"^[0-9a-f]{32}$")
    """MD5(url + title), lower-case hex: the name of the article if it is new (docs/writing.md)."""
    content_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the normalised text, hex: tells a changed article from a repeated one."""
    flags: tuple[str, ...] = ()
    """What the reader had to guess or to cut, e.g. `date_guessed`, `date_clamped` (docs/messages.md)."""

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
    skip_hours: tuple[int, ...] = ()
    """UTC hours, 0–23."""
    skip_days: tuple[int, ...] = ()
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
    STAND_INS: ClassVar[Mapping[str, StandIn]] = {
        "outcome": _outcome_like,
        "outcome_class": lambda _: OutcomeClass.SOFT,
        "reason": lambda _: "due",
        "entries.content_quality": lambda _: "summary",
    }

    result_id: UUID = Field(default_factory=uuid4)
    """One per attempt: the writer's key against writing the same attempt twice."""
    feed_id: int
    url: str
    """The URL that was asked, which is the one that the validators belong to."""
    claim_id: UUID
    claim_until: Moment | None = None
    """Not final: the new deadline of the claim, since a retry follows."""
    reason: Literal["due", "manual", "batch"] = "due"
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
    entries: tuple[Entry, ...] = ()
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
