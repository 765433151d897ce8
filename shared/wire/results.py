"""The wire: the result that a fetcher hands on, with everything that one attempt at a feed brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, get_args
from uuid import UUID, uuid4

from pydantic import ConfigDict, Field

from shared.wire.enrichment import Enrichment, EntityKind
from shared.wire.envelope import Listed, Many, Message, Moment, Record
from shared.wire.jobs import DIGEST_BYTES, REASONS, DateOrder, Reason
from shared.wire.outcomes import Outcome, OutcomeClass, stand_in

ContentQuality = Literal["full", "summary", "stub", "title_only"]
"""How much of an article its feed gives."""


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
    """Whether `entry_id` is the feed's own, though it may equal the URL. Older fetchers don't send this field."""
    url: str
    """Absolute, http or https; empty if the entry has none."""
    title: str
    """Plain text, one line."""
    body: str
    """Plain text; newlines separate paragraphs."""
    html: str | None = Field(default=None, exclude_if=lambda html: html is None)
    """The body as HTML that is safe to show, if it is kept and has markup (docs/reference/configuration.md).

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
    """MD5(url + title), lower-case hex: the id of the article if it is new (docs/explanation/articles.md)."""
    content_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 (hex) of the normalised text, by which a changed article differs from a repeated one."""
    enrichment: Enrichment | None = Field(default=None, exclude_if=lambda enrichment: enrichment is None)
    """What the enricher found out; None where it did not see the entry."""
    flags: Many[str] = ()
    """What the reader guessed or cut, for example `date_guessed`, `date_clamped` (docs/reference/queues.md)."""

    @classmethod
    def of_valid(cls, fields: dict[str, Any]) -> Self:
        """Return the entry with these fields: all fields, all valid. Nothing is checked or copied.

        For the reader, which makes every field itself. It takes a fifth of the time of a validation; pydantic's own
        `model_construct` takes longer than a validation.
        """
        entry = cls.__new__(cls)
        set_attribute = object.__setattr__
        set_attribute(entry, "__dict__", fields)
        set_attribute(entry, "__pydantic_fields_set__", _ENTRY_FIELDS)
        set_attribute(entry, "__pydantic_extra__", None)
        set_attribute(entry, "__pydantic_private__", None)
        return entry


_ENTRY_FIELDS = set(Entry.model_fields)
"""The fields that are set in an entry with all of them. Entries share it, since nothing changes it: they are frozen."""


class FeedInfo(Record):
    """What the feed says of itself."""

    title: str | None = None
    site_url: str | None = None
    language: str | None = None


class ServerHints(Record):
    """What the server and the feed ask of our polling."""

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


class FeedFetched(Message):
    """Event: one attempt at a feed with *all* of its results, so that they are committed together or not at all."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    KIND: ClassVar[str] = "feed.fetched.v1"
    LISTED: ClassVar[Mapping[str, Listed]] = {
        "outcome": Listed(frozenset(Outcome), stand_in),
        "outcome_class": Listed(frozenset(OutcomeClass), lambda _: OutcomeClass.SOFT),
        "reason": REASONS,
        "entries.content_quality": Listed(frozenset(get_args(ContentQuality)), lambda _: "summary"),
        "entries.enrichment.entities.kind": Listed(frozenset(get_args(EntityKind)), lambda _: "organisation"),
    }

    result_id: UUID = Field(default_factory=uuid4)
    """One per attempt: by this key the writer writes no attempt twice."""
    feed_id: int
    url: str
    """The URL of the job; the validators belong to it."""
    claim_id: UUID
    claim_until: Moment | None = None
    """The new deadline of the claim if a retry follows (not `final`)."""
    reason: Reason = "due"
    probe: bool = Field(default=False, exclude_if=lambda probe: not probe)
    """The validators were left out on purpose."""
    outcome: Outcome
    outcome_class: OutcomeClass | None = Field(default=None, exclude_if=lambda kind: kind is None)
    """What the outcome means to a service that does not know it; not sent with outcomes that every version knows."""
    final: bool
    """False if the same job comes back (`soft_error`, `skipped`); then the feed's state waits for its result."""
    attempt: int = Field(default=0, ge=0)
    status: int | None = None
    final_url: str | None = None
    moved_to: str | None = None
    """The URL after the leading permanent redirects (301, 308)."""
    etag: str | None = None
    last_modified: str | None = None
    body_hash: str | None = None
    hints: ServerHints = ServerHints()
    not_before: Moment | None = None
    """The earliest time that the server allows (Retry-After)."""
    queued_at: Moment
    started_at: Moment
    elapsed_seconds: float = Field(ge=0)
    wire_bytes: int = Field(default=0, ge=0)
    decoded_bytes: int = Field(default=0, ge=0)
    tier: str | None = None
    """Which reader read the body: `strict`, `lenient`, `json` or `salvage`."""
    feed: FeedInfo = FeedInfo()
    date_order: DateOrder | None = Field(default=None, exclude_if=lambda order: order is None)
    """What stands first in the feed's numeric dates, as one of them proves; None: none proves it."""
    entries: Many[Entry] = ()
    known: bytes = Field(default=b"", exclude_if=lambda known: not known)
    """Digests of listed entries that the job knew. They were not read, and are not in `entries`."""
    digests: bytes = Field(default=b"", exclude_if=lambda digests: not digests)
    """The digest of the entries' context, then one for each of `entries`; zeros if it can't be recognised next time.

    Empty: no entry of this document can be recognised.
    """
    error_class: str | None = None
    error: str | None = Field(default=None, max_length=500)

    @property
    def items_seen(self) -> int:
        """The number of entries that the feed lists."""
        return len(self.entries) + len(self.known) // DIGEST_BYTES

    def encode(self) -> tuple[bytes, str | None]:
        """Return body and content encoding, with the outcome's class for services that may not know the outcome."""
        if self.outcome.is_original or self.outcome_class is self.outcome.outcome_class:
            return super().encode()
        return self.model_copy(update={"outcome_class": self.outcome.outcome_class}).encode()

    def headers(self) -> dict[str, str | int]:
        """Return feed, attempt, outcome and the number of entries, by which the writer sizes its batches."""
        return {
            "feed_id": self.feed_id,
            "attempt": self.attempt,
            "outcome": self.outcome.value,
            "entries": len(self.entries),
        }
