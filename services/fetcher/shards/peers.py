"""The other fetchers: what they say that they own, and which of them are gone.

A fetcher listens over a queue that bears its name and ends with its connection, so the broker tells who is gone. One
that is silent may only be busy. (The queue of an earlier version has another name; there, silence has to do.)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from dataclasses import asdict, fields
from uuid import uuid4

from services.fetcher.shards.assignment import Heartbeat
from shared.broker.port import Publication, Session
from shared.broker.topology import FETCHERS

log = logging.getLogger(__name__)

MISSED_BEATS = 3
"""Who was not heard for so many beats (of our own: a pause of ours makes nobody else silent) is silent."""

RETURN_BEATS = 5
"""How many beats more a fetcher may be silent after this one's session was lost: it may be connecting anew, too."""

ALIVE = "fetcher.alive."
"""What the name of a fetcher begins with whose queue bears its name."""


def new_name() -> str:
    """Return a name that no other fetcher has."""
    return f"{ALIVE}{uuid4().hex}"


class Peers:
    """See the module. Used on one event loop.

    Args:
        name: our own.
        shards: how many shards there are, as this process was told.
    """

    def __init__(self, name: str, shards: int) -> None:
        self._name = name
        self._shards = shards
        self._others: dict[str, Heartbeat] = {}
        self._silent: dict[str, int] = {}
        self.is_asked = False
        """Somebody who is new wants to know what we own."""

    def __len__(self) -> int:
        return len(self._others)

    def others(self) -> Collection[Heartbeat]:
        """Return what each of them said last."""
        return self._others.values()

    def expect_back(self) -> None:
        """Begin a new session. The others may have lost theirs as well: what they said last stands until they are back.

        Those that were leaving don't come back.
        """
        self._others = {name: heartbeat for name, heartbeat in self._others.items() if not heartbeat.leaving}
        self._silent = dict.fromkeys(self._others, -RETURN_BEATS)

    def hear(self, body: bytes) -> bool:
        """Take note of what a fetcher says; return whether it is anything new."""
        heartbeat = _read(body)
        if heartbeat is None or heartbeat.fetcher == self._name:
            return False
        known = self._others.get(heartbeat.fetcher)
        self._others[heartbeat.fetcher] = heartbeat
        self._silent[heartbeat.fetcher] = 0
        if known is None and heartbeat.shards != self._shards:
            log.error(
                "another fetcher counts %d shards and this one %d: FEEDMILL_FETCHER_SHARDS must be the same for all",
                heartbeat.shards,
                self._shards,
            )
        self.is_asked |= heartbeat.is_new or known is None
        return heartbeat != known

    async def count_beat(self, session: Session) -> None:
        """Forget who is gone. Called once in a beat. Raises BrokerUnavailable."""
        for name in list(self._others):
            self._silent[name] += 1
            if self._silent[name] > MISSED_BEATS:
                await self._look_for(session, name)

    async def _look_for(self, session: Session, name: str) -> None:
        """Forget a fetcher that is silent, unless its session stands."""
        stands = name.startswith(ALIVE) and await session.is_locked(name)
        if self._silent[name] <= MISSED_BEATS:  # it was heard meanwhile
            return
        if stands:
            self._silent[name] = 0
            return
        if not self._others[name].leaving:
            log.info("another fetcher is gone: its shards are shared out anew", extra={"fetcher": name})
        del self._others[name], self._silent[name]


def _read(body: bytes) -> Heartbeat | None:
    """Return what was said, without what a later version adds; None if it can't be read."""
    try:
        said = json.loads(body)
        known = {field.name: said[field.name] for field in fields(Heartbeat) if field.name in said}
        return Heartbeat(**{**known, "owned": frozenset(said["owned"])})
    except (ValueError, TypeError, KeyError) as error:
        log.debug("a heartbeat that can't be read: %r", error)
        return None


def to_publication(heartbeat: Heartbeat) -> Publication:
    """Return what tells all fetchers."""
    body = json.dumps({**asdict(heartbeat), "owned": sorted(heartbeat.owned)}).encode()
    return Publication(routing_key="", exchange=FETCHERS, body=body, type="fetcher.hello")
