"""The wire: the job that the scheduler hands to a fetcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue

from shared.wire.envelope import Listed, Many, Message, Moment, Record

Reason = Literal["due", "manual", "batch"]
"""Why a feed is fetched."""

DateOrder = Literal["day", "month"]
"""What stands first in dates such as 03/04/2026."""

DIGEST_BYTES = 8
"""The length of a digest of an entry's source: two of a feed's entries are confused once in 10^13 polls."""

DEFAULT_SOURCE_TYPE = "feed"
"""Of feeds that were registered without one."""

REASONS = Listed(frozenset(get_args(Reason)), lambda _: "due")


class ResumeState(Record):
    """How far the redirects of a fetch have led, while its next request waits for a slot of another host."""

    url: str
    """The next URL to request."""
    visited: Many[str]
    """The URLs asked before, oldest first."""
    moved_to: str | None = None
    """The URL after the leading permanent redirects."""
    permanent: bool = False
    """Whether every redirect so far was permanent."""
    started_at: Moment
    spent_seconds: float = Field(ge=0)
    """How much of the fetch's time limit the requests so far took."""


class FetchFeed(Message):
    """Command: fetch this feed once. It holds everything that the fetcher may know, which has no database."""

    model_config = ConfigDict(
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    KIND: ClassVar[str] = "feed.fetch.v1"
    LISTED: ClassVar[Mapping[str, Listed]] = {"reason": REASONS}
    MOST_BYTES: ClassVar[int | None] = 512 * 1024
    MOST_VALUES: ClassVar[int] = 20_000

    feed_id: int
    url: str
    source_type: str = DEFAULT_SOURCE_TYPE
    """How the body is read: the name of an installed source type."""
    source_config: dict[str, JsonValue] = Field(default_factory=dict)
    etag: str | None = None
    """Verbatim as the server sent it, quotes and `W/` included."""
    last_modified: str | None = None
    """Verbatim as the server sent it."""
    validators_url: str | None = None
    """The URL that gave the validators (after redirects); they are sent to no other URL."""
    body_hash: str | None = None
    """SHA-256 (hex) of the last body that was read; the same body again is `unchanged` and not parsed."""
    known: bytes = Field(default=b"", exclude_if=lambda known: not known)
    """Digests of the entries that are committed from the feed's last reading; the fetcher need not read these again.

    `DIGEST_BYTES` each, the first one of their context (what an entry's meaning depends on outside of it). Empty: all
    entries are read.
    """
    since: Moment | None = None
    """The cursor: newest publication time delivered so far. Errs on inclusion."""
    date_order: DateOrder | None = Field(default=None, exclude_if=lambda order: order is None)
    """What stands first in the feed's numeric dates, if a person or an earlier reading told it."""
    group: str
    """Politeness group: host[:port], lower-case, IDNA."""
    claim_id: UUID
    not_after: Moment
    """The claim's deadline. Past it the job is `stale`: the scheduler has issued the feed again."""
    attempt: int = Field(default=0, ge=0)
    """Failed attempts before this one."""
    skips: int = Field(default=0, ge=0)
    """How often the job was deferred without an attempt, because its host was down or throttled."""
    resume: ResumeState | None = Field(default=None, alias="detour")
    """A fetch under way: it goes on here instead of at `url`. The JSON keeps the name that running versions read."""
    reason: Reason = "due"
    dry_run: bool = False
    """Read the whole feed and show what it would bring: the result goes to `writer.trials`, and is not written."""
    probe: bool = Field(default=False, exclude_if=lambda probe: not probe)
    """Leave the validators out this once, to see whether the server's 304 answers are true."""
    queued_at: Moment

    @property
    def goes_ahead(self) -> bool:
        """Whether a person waits for it. A retry is a job like any other."""
        return self.reason == "manual" and not self.attempt and not self.skips

    def headers(self) -> dict[str, str | int]:
        """Feed, attempt and skips."""
        return {"feed_id": self.feed_id, "attempt": self.attempt, "skips": self.skips}
