"""Which shards this process owns: an even share of them, each under a lock at the broker.

All requests to a host go through the fetcher that owns the host's shard, so its scoreboard is complete.

- **Owning is a lock** at the broker (`Session.lock`). One session at a time holds it, and it ends with the connection.
- **Even shares.** Each fetcher publishes a heartbeat once a second, and at each change: the shards that it owns. Each
  computes the same assignment from that (`assignment.py`). If they disagree, a lock is refused, and nothing else.
  A fetcher is gone when its session at the broker has ended, not when it is silent.
- **A lease** (`lease.py`): the broker takes the locks of a frozen process away. So before a request leaves, its thread
  makes sure that the broker has answered a short while ago, or waits for an answer.
- **A lost connection** loses the locks, but running requests go on. Their shards count as owned: other fetchers leave
  them alone, and this one takes them again.
- **A restart of the broker** loses all locks. Each fetcher takes its former shards and leaves the others theirs for a
  while. So a redelivered job reaches the fetcher that has made its request already.
- **Releasing a shard**: stop consuming its queue, nack the waiting jobs, let running requests end, unlock. The next
  owner lets each of its groups rest for an interval first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Protocol

from prometheus_client import Gauge

from services.fetcher.shards.assignment import next_steps
from services.fetcher.shards.heartbeats import Heartbeats
from services.fetcher.shards.lease import Lease
from shared.broker.port import Broker, Session
from shared.broker.prefetch import PrefetchLimit
from shared.broker.shards import in_ranges, lock_of
from shared.broker.topology import FETCHERS, Stage, Topology
from shared.errors import BrokerUnavailable, Unavailable
from shared.waiting import pause

log = logging.getLogger(__name__)

OWNED = Gauge("feedmill_shards_owned", "Shards of the fetchers' work that this process owns.")

BEAT_SECONDS = 1.0
"""How often a fetcher publishes a heartbeat."""

LISTEN_SECONDS = 0.5
"""How long a new fetcher listens to the others before it takes a shard."""

REFUSED_BEATS = 5
"""After so many beats a refused lock is tried again: a fetcher has it whose heartbeats we do not receive."""

LOOK_SECONDS = 0.05


class ShardJobs(Protocol):
    """The jobs of this process by shard. `Slots` has them."""

    def open_shard(self, shard: str, now: float) -> None: ...  # noqa: D102
    def close_shard(self, shard: str) -> None: ...  # noqa: D102
    def count_jobs(self, shard: str) -> int: ...  # noqa: D102


class Shards:
    """A broker that wraps another one: its sessions own shards. Used on one event loop.

    Args:
        broker: the wrapped one.
        stage: its queues are the shards.
        prefetch_limit: is set to read from the owned shards.
        jobs: the jobs of this process by shard.
        stop: releases all shards, each when its running requests have ended.
        drain_seconds: the longest time that running requests may take before their shard is released anyway.
        clock: monotonic seconds, the same as of `jobs`.
        lease: of all locks, since they end together.
        uptime: the seconds that the lease counts by.
        on_message: receives every message on the fetchers' exchange; schedulers publish the time there.
    """

    def __init__(  # noqa: PLR0913 - tests replace each of them
        self,
        broker: Broker,
        stage: Stage,
        prefetch_limit: PrefetchLimit,
        jobs: ShardJobs,
        *,
        stop: asyncio.Event,
        drain_seconds: float,
        clock: Callable[[], float],
        lease: Lease,
        uptime: Callable[[], float],
        on_message: Callable[[bytes], None] = lambda body: None,
    ) -> None:
        self._broker = broker
        self._stage = stage
        self._prefetch_limit = prefetch_limit
        self._jobs = jobs
        self._stop = stop
        self._drain_seconds = drain_seconds
        self._clock = clock
        self._lease = lease
        self._uptime = uptime
        self._heartbeats = Heartbeats(len(stage.queues), on_message)
        self.name = self._heartbeats.name
        self._owned: set[str] = set()
        self._releasing: set[str] = set()
        self._former: set[str] = set()
        """Owned when the last session was lost. They count as owned until the first step of the next session."""
        self._abandoned: set[str] = set()
        """Released although requests of them still ran."""
        self._refused: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = self._heartbeats.changed
        self._heartbeat_is_due = False
        self._was_standby = False
        self._forget()

    @property
    def max_message_bytes(self) -> int:
        """Return how many bytes a body may have."""
        return self._broker.max_message_bytes

    def owned(self) -> list[str]:
        """Return the shards that this process owns, including those that it is about to release."""
        return sorted(self._owned)

    def owns(self, queue: str) -> bool:
        """Return whether this process may make requests to groups of this shard."""
        return queue in self._owned

    def may_leave(self, queue: str) -> bool:
        """Return whether a request to a group of this shard may leave now. Called on a worker thread.

        Waits until the answer is certain. After a pause of the process that takes a round trip to the broker, or the
        loss of the session.
        """
        while self.owns(queue) and not self._lease.is_certain(self._uptime()):
            time.sleep(LOOK_SECONDS)
        return self.owns(queue)

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Yield a session, and own shards for its length."""
        async with self._broker.connect(topology) as session, self._owning(session):
            yield session

    @asynccontextmanager
    async def _owning(self, session: Session) -> AsyncIterator[None]:
        ended = asyncio.Event()
        self._forget()
        self._heartbeats.begin_session()
        self._start(session, self._run(session, ended))
        try:
            yield
        finally:
            ended.set()  # not cancelled: the AMQP library may take a cancellation for its own
            session_tasks = set(self._tasks)
            if session_tasks:
                _, late = await asyncio.wait(session_tasks, timeout=BEAT_SECONDS)
                for task in late:
                    task.cancel()
            self._former |= self._owned - self._releasing
            self._forget()

    def _forget(self) -> None:
        """Own nothing: all locks ended with the session."""
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
                log.exception("owning shards failed; starting again with a new session")
                session.lost.set()

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, session: Session, ended: asyncio.Event) -> None:
        while not await session.listen(FETCHERS, self._heartbeats.receive, name=self.name):
            log.info("the broker has yet to notice that the last session of this fetcher has ended")
            await pause(BEAT_SECONDS, ended, session.lost)
            if ended.is_set() or session.lost.is_set():
                return
        self._send_heartbeat(session, is_new=True)
        await pause(LISTEN_SECONDS, ended, self._stop)
        beat_at = 0.0
        while not (ended.is_set() or session.lost.is_set()):
            self._changed.clear()
            now = self._clock()
            if now >= beat_at - LOOK_SECONDS:
                beat_at = now + BEAT_SECONDS
                await self._beat(session)
            await self._step(session, ended)
            self._note_standby()
            if self._heartbeats.take_request() or self._heartbeat_is_due:
                self._heartbeat_is_due = False
                self._send_heartbeat(session)
            events = (ended, session.lost, self._changed, *(() if self._stop.is_set() else (self._stop,)))
            await pause(max(beat_at - self._clock(), 0.0), *events)

    async def _step(self, session: Session, ended: asyncio.Event) -> None:
        """Take and release shards towards an even share."""
        if self._stop.is_set():
            release, take = frozenset(self._owned), frozenset[str]()
        else:
            others = self._heartbeats.others()
            steps = next_steps(self.name, self._owned, others, self._stage.queues, self._busy())
            release, take = steps.release, steps.take
        changed = False
        for queue in sorted(take - self._refused.keys()):
            if await self._lock(session, lock_of(queue)):
                self._jobs.open_shard(queue, self._clock())
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
        """Release a shard when nothing of it runs any more."""
        self._prefetch_limit.read_from(self._consumed())
        followed = self._prefetch_limit.next_applied()
        while not followed.done() and not (self._stop.is_set() or ended.is_set()):
            await pause(LOOK_SECONDS, self._stop, ended)
        self._jobs.close_shard(queue)
        deadline = self._clock() + self._drain_seconds
        while self._jobs.count_jobs(queue) and not ended.is_set():
            if self._clock() > deadline:
                log.warning("releasing a shard although requests of it still run", extra={"queue": queue})
                self._abandoned.add(queue)
                break
            await pause(LOOK_SECONDS, ended)
        if ended.is_set():  # the connection is about to end, and the lock with it
            return
        await session.unlock(lock_of(queue))
        self._owned.discard(queue)
        self._releasing.discard(queue)
        self._note_change()
        self._changed.set()

    def _busy(self) -> set[str]:
        """Return the shards of which jobs are here. After a lost connection these are more than the owned ones.

        Right after that, the formerly owned shards count as well.
        """
        running = {queue for queue in self._stage.queues if self._jobs.count_jobs(queue)}
        return (running | self._former) - self._abandoned

    def _consumed(self) -> tuple[str, ...]:
        return tuple(sorted(self._owned - self._releasing))

    def _note_change(self) -> None:
        self._heartbeat_is_due = True
        OWNED.set(len(self._owned))
        self._prefetch_limit.read_from(self._consumed())
        log.info("owning shards", extra={"queues": in_ranges(self.owned()), "giving_up": in_ranges(self._releasing)})

    async def _beat(self, session: Session) -> None:
        """Renew the lease, have a heartbeat sent, and forget fetchers that are gone."""
        self._heartbeat_is_due = True
        if not await self._lock(session, self.name):
            raise BrokerUnavailable("the locks of this session are gone")
        await self._heartbeats.look_for_silent(session)
        self._refused = {queue: beats - 1 for queue, beats in self._refused.items() if beats > 1}

    async def _lock(self, session: Session, name: str) -> bool:
        """Take a lock. If that succeeds, all locks of this session stood when it was asked for."""
        asked_at = self._uptime()
        if is_ours := await session.lock(name):
            self._lease.renew(asked_at)
        return is_ours

    def _note_standby(self) -> None:
        is_standby = not self._owned and len(self._heartbeats) >= len(self._stage.queues)
        if is_standby and not self._was_standby:
            log.info(
                "standing by: there are as many fetchers as shards without this one",
                extra={"fetchers": len(self._heartbeats) + 1, "shards": len(self._stage.queues)},
            )
        self._was_standby = is_standby

    def _send_heartbeat(self, session: Session, *, is_new: bool = False) -> None:
        owned = self._owned | self._busy()
        # Not awaited: a broker under an alarm confirms nothing for a long time.
        self._start(session, self._heartbeats.publish(session, owned, leaving=self._stop.is_set(), is_new=is_new))
