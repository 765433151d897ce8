"""The tokens and sessions that this process knows: those that it let in, and those that it made itself."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from services.admin.access.tokens import Grant

TRUSTED_SECONDS = 5.0
"""For so long a process takes a token or a session for good without asking the database: one that was revoked by
another process ends then."""

READING_SECONDS = 3600.0
"""For so long after that it may still read while the database does not answer: whoever looks why sees it then."""

MOST_REMEMBERED = 1000


@dataclass
class Known:
    """A token or a session that was good."""

    grant: Grant
    until: float
    reading_until: float
    """For reading, while the database does not answer; not beyond its own end."""
    is_session: bool
    is_used: bool
    """Since the last round of `TokenAccess.note_uses`."""


class Remembered:
    """What is known of secrets, by their hashes; bounded in memory.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        self._refused: OrderedDict[bytes, None] = OrderedDict()
        self.endings = 0
        """How often something ended in this process: what was read before that may be good no more."""

    def __contains__(self, hashed: bytes) -> bool:
        return hashed in self._known

    def read(self, hashed: bytes) -> Grant | None:
        """Return what this secret allows, and note its use; None: the database knows."""
        known = self._known.get(hashed)
        if known is None or self._clock() >= known.until:
            return None
        known.is_used = True
        return known.grant

    def read_while_away(self, hashed: bytes) -> Grant | None:
        """Return what this secret allowed, for reading while the database can't be asked; None: too long ago."""
        known = self._known.get(hashed)
        return None if known is None or self._clock() >= known.reading_until else known.grant

    def add(self, grant: Grant, *, is_session: bool, is_used: bool) -> None:
        """Remember a grant that was read a moment ago."""
        left = math.inf if grant.seconds_left is None else grant.seconds_left
        now = self._clock()
        until, reading_until = now + min(TRUSTED_SECONDS, left), now + min(READING_SECONDS, left)
        self._known.pop(grant.secret_hash, None)
        self._known[grant.secret_hash] = Known(grant, until, reading_until, is_session, is_used)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    def end(self, hashed: bytes) -> None:
        """Forget a secret, at once."""
        self.endings += 1
        self._known.pop(hashed, None)

    def end_token(self, token_id: int) -> None:
        """Forget a token and its sessions, at once."""
        self.endings += 1
        for hashed in [hashed for hashed, known in self._known.items() if known.grant.token_id == token_id]:
            del self._known[hashed]

    def refuse(self, hashed: bytes) -> None:
        """Remember that a secret is no good. Secrets are random, so it never will be."""
        self._known.pop(hashed, None)
        self._refused[hashed] = None
        if len(self._refused) > MOST_REMEMBERED:
            self._refused.popitem(last=False)

    def is_refused(self, hashed: bytes) -> bool:
        """Return whether a secret was no good before."""
        return hashed in self._refused

    def used(self) -> list[Known]:
        """Return what was used since the last round."""
        return [known for known in self._known.values() if known.is_used]
