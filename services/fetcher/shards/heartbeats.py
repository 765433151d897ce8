"""The heartbeats of fetchers: ours are published, those of others say what they own and whether they are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from uuid import uuid4

from services.fetcher.shards.assignment import Heartbeat, Peers, decode_heartbeat
from shared.broker.port import Publication, Session
from shared.broker.topology import FETCHERS
from shared.errors import Unavailable

log = logging.getLogger(__name__)

ALIVE = "fetcher.alive."
"""The prefix of a fetcher's name, which its queue bears: its session stands while the queue is locked. The queue of an
earlier version has another name; such a fetcher is gone when it is silent."""


class Heartbeats:
    """Publishes our heartbeats and follows those of the others. Used on one event loop.

    Args:
        shards: how many shards there are.
        on_message: receives every message on the fetchers' exchange; schedulers publish the time there.
    """

    def __init__(self, shards: int, on_message: Callable[[bytes], None]) -> None:
        self.name = f"{ALIVE}{uuid4().hex}"
        self.changed = asyncio.Event()
        """Another fetcher owns other shards than before."""
        self._shards = shards
        self._on_message = on_message
        self._peers = Peers(self.name)

    def __len__(self) -> int:
        return len(self._peers)

    def others(self) -> Collection[Heartbeat]:
        """Return the last heartbeat of each other fetcher."""
        return self._peers.others()

    def begin_session(self) -> None:
        """Begin a new session: the others may have lost theirs as well."""
        self._peers.expect_back()

    def take_request(self) -> bool:
        """Return whether a new fetcher has asked for our heartbeat since the last call."""
        is_asked, self._peers.is_asked = self._peers.is_asked, False
        return is_asked

    def receive(self, body: bytes) -> None:
        """Take a message on the fetchers' exchange into account."""
        self._on_message(body)
        heartbeat = decode_heartbeat(body)
        if heartbeat is None or heartbeat.fetcher == self.name:
            return
        if heartbeat.shards != self._shards and not self._peers.knows(heartbeat.fetcher):
            log.error(
                "another fetcher counts %d shards and this one %d: FEEDMILL_FETCHER_SHARDS must be the same for all",
                heartbeat.shards,
                self._shards,
            )
        if self._peers.note(heartbeat):
            self.changed.set()

    async def look_for_silent(self, session: Session) -> None:
        """Forget the fetchers that are silent and have no session. Called once in a beat. Raises BrokerUnavailable."""
        for name in self._peers.count_beat():
            stands = name.startswith(ALIVE) and await session.is_locked(name)
            if not self._peers.is_silent(name):  # its heartbeat came meanwhile
                continue
            if stands:
                self._peers.excuse(name)
            elif not self._peers.forget(name).leaving:
                log.info("another fetcher is gone: its shards are assigned anew", extra={"fetcher": name})

    async def publish(self, session: Session, owned: Collection[str], *, leaving: bool, is_new: bool) -> None:
        """Publish a heartbeat."""
        heartbeat = Heartbeat(self.name, frozenset(owned), leaving, is_new, self._shards)
        try:
            await session.publish(Publication("", heartbeat.encode(), FETCHERS, "fetcher.hello"))
        except Unavailable as error:
            log.debug("a heartbeat was not sent: %s", error)
