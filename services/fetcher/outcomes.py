"""Pure: decides the outcome of an attempt from its status, failure or parse error.

The table in `shared/wire/outcomes.py` explains the outcomes.
"""

from __future__ import annotations

from services.fetcher.http.failure import Failure
from services.fetcher.parse.model import NotAFeed, ParseError
from shared.wire.outcomes import Outcome

SOFT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 530})
"""Statuses of a server that may work again in an hour."""

WAIT_STATUSES = frozenset({429, 503})
"""Statuses on which Retry-After is honoured (RFC 9110, RFC 6585)."""

_FAILURES = {
    Failure.CONNECT: Outcome.SOFT_ERROR,
    Failure.TIMEOUT: Outcome.SOFT_ERROR,
    Failure.PROTOCOL: Outcome.SOFT_ERROR,
    Failure.TOO_LARGE: Outcome.TOO_LARGE,
    Failure.BLOCKED: Outcome.BLOCKED,
    Failure.REDIRECT: Outcome.HARD_ERROR,
    Failure.BAD_URL: Outcome.HARD_ERROR,
}


def outcome_of_failure(failure: Failure) -> Outcome:
    """Return the outcome of an attempt that got no response."""
    return _FAILURES[failure]


def outcome_of_status(status: int, *, conditional: bool = False) -> Outcome | None:
    """Return the outcome that a status means by itself. None for 200 and most other 2xx: the body decides.

    A 304 to a request that was not `conditional` is an error: it refers to no earlier response.
    """
    if status == 304:
        return Outcome.NOT_MODIFIED if conditional else Outcome.HARD_ERROR
    if 200 <= status < 300 and status not in {204, 205}:
        return None
    if status in {204, 205}:
        return Outcome.NOT_A_FEED
    if status == 410:
        return Outcome.GONE
    if status in SOFT_STATUSES:
        return Outcome.SOFT_ERROR
    return Outcome.HARD_ERROR


def outcome_of_parse_error(error: ParseError, *, was_feed: bool = False) -> Outcome:
    """Return the outcome of a body that can't be read.

    If the URL `was_feed` before, a body of another kind is probably temporary: an error page with status 200, or the
    portal of a hotel.
    """
    if not isinstance(error, NotAFeed):
        return Outcome.UNPARSEABLE
    return Outcome.SOFT_ERROR if was_feed else Outcome.NOT_A_FEED
