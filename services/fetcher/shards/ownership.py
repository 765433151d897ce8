"""Which shards this process owns: an even share of them, each under a lock that the broker keeps.

All requests to a host go through the fetcher that owns the host's shard, so that its scoreboard is the truth.

- **Owning is a lock** of the broker's (`Session.lock`): one session at a time has it, and it ends with the connection,
  so that what a fetcher owned that is killed is free at once.
- **Even shares** come from what the fetchers tell each other: once a second, and whenever something changes, each says
  what it owns. Each works out the same assignment from that (`assignment.py`). If they are mistaken about each
  other, a lock is refused, and that is all.
- **Who is gone** is told by the broker, and not by silence (`peers.py`).
- **A lease** (`lease.py`): the broker takes away the locks of a process that was frozen. Before a request leaves, its
  thread makes sure that the broker was heard of a short while ago, and waits for its answer if not.
- **A connection that is lost** takes the locks along, and what was begun goes on. So what a fetcher still runs
  something of counts as its own: others leave it alone, and it comes back to who has it in hand.
- **A broker that was restarted** took the locks of all. Each fetcher takes the shards that it had before, and leaves
  the others theirs for a while: a job that is handed out again reaches the fetcher that has asked already.
- **Giving a shard up**: nothing more is taken from its queue, what has not begun goes back, what runs comes to its end;
  then the lock is given back. Whoever takes it lets each of its groups rest for an interval first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from prometheus_client import Gauge

from services.fetcher.politeness.slots import Slots
from services.fetcher.shards.assignment import Heartbeat, next_steps
from services.fetcher.shards.lease import Lease
from services.fetcher.shards.peers import Peers, new_name, to_publication
from shared.broker.port import Broker, Session
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import FETCHERS, Stage, Topology
from shared.errors import BrokerUnavailable, Unavailable
from shared.waiting import pause

log = logging.getLogger(__name__)

OWNED = Gauge("feedmill_shards_owned", "Shards of the fetchers' work that this process owns.")

BEAT_SECONDS = 1.0
"""How often a fetcher says what it owns."""

LISTEN_SECONDS = 0.5
"""How long a fetcher that comes listens to the others before it takes anything."""

REFUSED_BEATS = 5
"""After so many beats a lock is tried again that somebody had whom we did not hear of."""

LOOK_SECONDS = 0.05


class Shards:
    """See the module. A broker, to be put before another, whose sessions own shards. Used on one event loop.

    Args:
        prefetch_limit: pointed at what is owned.
        slots: told what is owned, and asked whether something still runs.
        stop: gives all up, one after the other as what runs there ends.
        drain_seconds: how long what runs may take to its end before its shard is given up.
        clock: monotonic seconds, as the turns have it.
        lease: what is known of the locks; of all, since they end together.
        uptime: the seconds that the lease counts by.
        hear: told everything that is said where fetchers talk; schedulers tell the time there.
    """

    def __init__(  # noqa: PLR0913 - clocks, locks and ears: each has a stand-in in tests
        self,
        broker: Broker,
        stage: Stage,
        prefetch_limit: PrefetchLimit,
        slots: Slots,
        *,
        stop: asyncio.Event,
        drain_seconds: float,
        clock: Callable[[], float],
        lease: Lease,
        uptime: Callable[[], float],
        hear: Callable[[bytes], None] = lambda body: None,
    ) -> None:
        self._broker = broker
        self._stage = stage
        self._prefetch_limit = prefetch_limit
        self._slots = slots
        self._stop = stop
        self._drain_seconds = drain_seconds
        self._clock = clock
        self._lease = lease
        self._uptime = uptime
        self._tell = hear
        self.name = new_name()
        self._peers = Peers(self.name, len(stage.queues))
        self._owned: set[str] = set()
        self._releasing: set[str] = set()
        self._former: set[str] = set()
        """Owned when the last session was lost; counts as owned until the first step of the next session."""
        self._abandoned: set[str] = set()
        """Given up although something of them still ran."""
        self._refused: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._heartbeat_is_due = False
        self._was_standby = False
        self._forget()

    @property
    def max_message_bytes(self) -> int:
        """Return how many bytes a body may have. See `shared.broker.port.Broker`."""
        return self._broker.max_message_bytes

    def owned(self) -> list[str]:
        """Return the shards that this process owns, those included that it is about to give up."""
        return sorted(self._owned)

    def owns(self, queue: str) -> bool:
        """Return whether requests to groups of this shard are ours to make."""
        return queue in self._owned

    def may_leave(self, queue: str) -> bool:
        """Return whether a request to a group of this shard may leave now.

        On a worker thread: it waits until that is certain, which after a pause of the whole process takes a round trip
        to the broker, or the loss of the session.
        """
        while self.owns(queue) and not self._lease.is_certain(self._uptime()):
            time.sleep(LOOK_SECONDS)
        return self.owns(queue)

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Yield a session, and own shards for its length. See `shared.broker.port.Broker.connect`."""
        async with self._broker.connect(topology) as session, self._owning(session):
            yield session

    @asynccontextmanager
    async def _owning(self, session: Session) -> AsyncIterator[None]:
        ended = asyncio.Event()
        self._forget()
        self._peers.expect_back()
        self._start(session, self._run(session, ended))
        try:
            yield
        finally:
            ended.set()  # told rather than cancelled: the AMQP library may take a cancellation for its own
            session_tasks = set(self._tasks)
            if session_tasks:
                _, late = await asyncio.wait(session_tasks, timeout=BEAT_SECONDS)
                for task in late:
                    task.cancel()
            self._former |= self._owned - self._releasing
            self._forget()

    def _forget(self) -> None:
        """Own nothing: with the session all locks are gone."""
        for known in (self._owned, self._releasing, self._refused):
            known.clear()
        OWNED.set(0)
        self._prefetch_limit.read_from(())

    def _start(self, session: Session, work: Coroutine[None, None, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except Unavailable as error:
                log.info("the shards are lost with the session: %s", error)
                session.lost.set()
            except Exception:
                log.exception("the dealing of shards itself failed; starting it anew with a new session")
                session.lost.set()

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, session: Session, ended: asyncio.Event) -> None:
        while not await session.listen(FETCHERS, self._hear, name=self.name):
            log.info("the broker has yet to notice that the last session of this fetcher has ended")
            await pause(BEAT_SECONDS, ended, session.lost)
            if ended.is_set() or session.lost.is_set():
                return
        self._send_heartbeat(session, is_new=True)
        await pause(LISTEN_SECONDS, ended, self._stop)
        beat_at = 0.0
        while not (ended.is_set() or session.lost.is_set()):
            self._news.clear()
            now = self._clock()
            if now >= beat_at - LOOK_SECONDS:
                beat_at = now + BEAT_SECONDS
                await self._beat(session)
            await self._step(session, ended)
            self._note_standby()
            if self._heartbeat_is_due or self._peers.is_asked:
                self._heartbeat_is_due = self._peers.is_asked = False
                self._send_heartbeat(session)
            events = (ended, session.lost, self._news, *(() if self._stop.is_set() else (self._stop,)))
            await pause(max(beat_at - self._clock(), 0.0), *events)

    async def _step(self, session: Session, ended: asyncio.Event) -> None:
        """Do what is to be done next towards an even share."""
        if self._stop.is_set():
            release, take = frozenset(self._owned), frozenset[str]()
        else:
            others = self._peers.others()
            steps = next_steps(self.name, self._owned, others, self._stage.queues, self._busy())
            release, take = steps.release, steps.take
        changed = False
        for queue in sorted(take - self._refused.keys()):
            if await self._lock(session, f"{queue}.owner"):
                self._slots.open_shard(queue, self._clock())
                self._owned.add(queue)
                self._abandoned.discard(queue)
                changed = True
            else:
                self._refused[queue] = REFUSED_BEATS
        self._former.clear()
        for queue in sorted(release - self._releasing):
            self._releasing.add(queue)
            self._start(session, self._release(session, queue, ended))
            changed = True
        if changed:
            self._note_change()

    async def _release(self, session: Session, queue: str, ended: asyncio.Event) -> None:
        """Give a shard up without leaving anything of it under way."""
        self._prefetch_limit.read_from(self._consumed())
        followed = self._prefetch_limit.next_applied()
        while not followed.done() and not (self._stop.is_set() or ended.is_set()):
            await pause(LOOK_SECONDS, self._stop, ended)
        self._slots.close_shard(queue)
        deadline = self._clock() + self._drain_seconds
        while self._slots.count_jobs(queue) and not ended.is_set():
            if self._clock() > deadline:
                log.warning("a shard is given up although something of it still runs", extra={"queue": queue})
                self._abandoned.add(queue)
                break
            await pause(LOOK_SECONDS, ended)
        if ended.is_set():  # its connection is about to end, and the lock with it
            return
        await session.unlock(f"{queue}.owner")
        self._owned.discard(queue)
        self._releasing.discard(queue)
        self._note_change()
        self._news.set()

    def _busy(self) -> set[str]:
        """Return the shards of which something runs here: more than is owned, after a connection was lost.

        Right after that, what was owned before it counts as well.
        """
        running = {queue for queue in self._stage.queues if self._slots.count_jobs(queue)}
        return (running | self._former) - self._abandoned

    def _consumed(self) -> tuple[str, ...]:
        return tuple(sorted(self._owned - self._releasing))

    def _note_change(self) -> None:
        self._heartbeat_is_due = True
        OWNED.set(len(self._owned))
        self._prefetch_limit.read_from(self._consumed())
        log.info("owning shards", extra={"queues": self.owned(), "giving_up": sorted(self._releasing)})

    # ---- what the fetchers tell each other ----

    def _hear(self, body: bytes) -> None:
        self._tell(body)
        if self._peers.hear(body):
            self._news.set()

    async def _beat(self, session: Session) -> None:
        """Renew the lease, say heartbeat, and forget who is gone."""
        self._heartbeat_is_due = True
        if not await self._lock(session, self.name):
            raise BrokerUnavailable("the locks of this session are gone")
        await self._peers.count_beat(session)
        self._refused = {queue: beats - 1 for queue, beats in self._refused.items() if beats > 1}

    async def _lock(self, session: Session, name: str) -> bool:
        """Take a lock. Those that this session has stood at least when it was asked for."""
        asked_at = self._uptime()
        is_ours = await session.lock(name)
        if is_ours:
            self._lease.renew(asked_at)
        return is_ours

    def _note_standby(self) -> None:
        is_standby = not self._owned and len(self._peers) >= len(self._stage.queues)
        if is_standby and not self._was_standby:
            log.info(
                "standing by: there are as many fetchers as shards without this one",
                extra={"fetchers": len(self._peers) + 1, "shards": len(self._stage.queues)},
            )
        self._was_standby = is_standby

    def _send_heartbeat(self, session: Session, *, is_new: bool = False) -> None:
        owned = frozenset(self._owned | self._busy())
        heartbeat = Heartbeat(self.name, owned, self._stop.is_set(), is_new, len(self._stage.queues))

        async def say() -> None:
            try:
                await session.publish(to_publication(heartbeat))
            except Unavailable as error:
                log.debug("not heard by the others: %s", error)

        # Beside what else is to be done: a broker under an alarm confirms nothing for a long time.
        self._start(session, say())
