"""Pure: the table of outcomes. Everything that depends on an outcome reads its row here.

To add an outcome, add a row to `Outcome` and let the fetcher return it; no other place lists outcomes. A row without
one of its columns fails at import. A service that does not know an outcome yet treats it as its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, Self


class OutcomeClass(StrEnum):
    """What an outcome means to a service that does not know it."""

    SUCCESS = "success"
    """The server answered with the feed or with "not modified"."""
    SOFT = "soft"
    """The failure may pass by itself."""
    HARD = "hard"
    """The failure stays until somebody acts."""
    UNASKED = "unasked"
    """The server was not asked: the job was dropped or deferred."""


class BackOff(Enum):
    """When a feed is polled again.

    `first_seconds` is the wait after the first failure. Each further failure doubles it, up to
    FEEDMILL_MAX_POLL_SECONDS. A fixed interval of the feed, and some error classes of `hard_error`
    (services/writer/schedule/bounds.py), have first waits of their own.
    """

    USUAL = "usual", None
    """Not a failure: the publication rate decides."""
    AS_ASKED = "as asked", None
    """Not a failure: at the usual time, but not before the server allows it. The index that the alarm of silence reads
    names `throttled`: a second outcome of this kind needs a migration (services/scheduler/silence.sql)."""
    STILL_DUE = "still due", None
    """Not an attempt: the feed stays due."""
    TEN_MINUTES = "ten minutes", 600.0
    HALF_AN_HOUR = "half an hour", 1800.0
    AN_HOUR = "an hour", 3600.0
    SIX_HOURS = "six hours", 21600.0
    DISABLE_IF_CONFIRMED = "disable if confirmed", 3600.0
    """A second sighting, `gone_span_seconds` after the first or later, disables the feed."""

    def __init__(self, label: str, first_seconds: float | None) -> None:
        self.first_seconds = first_seconds


class OutcomeRow(StrEnum):
    """The columns of the table.

    Args:
        value: the name on the wire, in the fetch log, in the metric's label and in log lines.
        outcome_class: what the outcome means to a service that does not know it.
        is_final: False if the fetcher retries the job (an attempt counts as a retry, an unasked job as a skip).
        back_off: when the feed is polled again.
        may_be_feed: whether `feedmill feeds add` registers such a URL as it is. Else it looks for a feed elsewhere.
        is_original: whether every version knows it. False for every new outcome: it then travels with its class.
        words: what a person reads.
    """

    _value_: str
    outcome_class: OutcomeClass
    is_final: bool
    back_off: BackOff
    may_be_feed: bool
    is_original: bool
    words: str

    def __new__(
        cls,
        value: str,
        outcome_class: OutcomeClass,
        is_final: bool,
        back_off: BackOff,
        may_be_feed: bool,
        is_original: bool,
        words: str,
    ) -> Self:
        """Make a row. Raises ValueError if its back-off does not fit its class."""
        row = str.__new__(cls, value)
        row._value_ = value
        row.outcome_class, row.is_final, row.back_off = outcome_class, is_final, back_off
        row.may_be_feed, row.is_original, row.words = may_be_feed, is_original, words
        if (row.is_success, not row.is_attempt) != (back_off is BackOff.USUAL, back_off is BackOff.STILL_DUE):
            raise ValueError(f"outcome {value}: the back-off {back_off.name} does not fit the class {outcome_class}")
        return row

    @property
    def is_success(self) -> bool:
        """True if the server answered with the feed or with "not modified"."""
        return self.outcome_class is OutcomeClass.SUCCESS

    @property
    def is_attempt(self) -> bool:
        """False if the server was not asked."""
        return self.outcome_class is not OutcomeClass.UNASKED

    @property
    def is_deferred(self) -> bool:
        """True if the job comes back and the server was not asked."""
        return not self.is_attempt and not self.is_final


_SUCCESS, _SOFT, _HARD, _UNASKED = OutcomeClass
_B = BackOff


# fmt: off
class Outcome(OutcomeRow):
    """How one attempt at a feed ended: exactly one per attempt."""

    #               value           class     final  back-off                  feed?  orig. words
    FETCHED =      "fetched",      _SUCCESS, True,  _B.USUAL,                 True,  True, "the feed was read"
    NOT_MODIFIED = "not_modified", _SUCCESS, True,  _B.USUAL,                 True,  True, "nothing new (304)"
    UNCHANGED =    "unchanged",    _SUCCESS, True,  _B.USUAL,                 True,  True, "the same text as before"
    SOFT_ERROR =   "soft_error",   _SOFT,    False, _B.TEN_MINUTES,           True,  True, "failed, will be retried"
    GAVE_UP =      "gave_up",      _SOFT,    True,  _B.AN_HOUR,               True,  True, "failed, no retries left"
    HARD_ERROR =   "hard_error",   _HARD,    True,  _B.AN_HOUR,               False, True, "refused, or set up wrongly"
    GONE =         "gone",         _HARD,    True,  _B.DISABLE_IF_CONFIRMED,  False, True, "gone (410)"
    THROTTLED =    "throttled",    _SOFT,    True,  _B.AS_ASKED,              True,  True, "the server asks for a pause"
    BLOCKED =      "blocked",      _HARD,    True,  _B.SIX_HOURS,             True,  True, "the address is not allowed"
    TOO_LARGE =    "too_large",    _HARD,    True,  _B.SIX_HOURS,             True,  True, "larger than allowed"
    NOT_A_FEED =   "not_a_feed",   _HARD,    True,  _B.HALF_AN_HOUR,          False, True, "not a feed"
    UNPARSEABLE =  "unparseable",  _HARD,    True,  _B.HALF_AN_HOUR,          True,  True, "a feed too broken to read"
    STALE =        "stale",        _UNASKED, True,  _B.STILL_DUE,             True,  True, "the job came too late"
    SKIPPED =      "skipped",      _UNASKED, False, _B.STILL_DUE,             True,  True, "the host can't be asked now"
# fmt: on


def stand_in(result: Mapping[str, Any]) -> Outcome:
    """Return the outcome to use for a result (as JSON) whose own outcome this version does not know."""
    match result.get("outcome_class"):
        case OutcomeClass.SUCCESS:
            return Outcome.FETCHED if result.get("entries") else Outcome.NOT_MODIFIED
        case OutcomeClass.HARD:
            return Outcome.HARD_ERROR
        case OutcomeClass.UNASKED:
            return Outcome.STALE if result.get("final") else Outcome.SKIPPED
        case _:
            return Outcome.SOFT_ERROR


def words_of(value: str) -> str:
    """Return what a person reads for an outcome in the database; its name if this version does not know it."""
    return next((outcome.words for outcome in Outcome if outcome == value), value)
