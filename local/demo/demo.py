"""`feedmill demo`: the whole pipeline on a farm of feeds on loopback. At the end every article is counted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

import psycopg

from local.addresses import Addresses
from local.demo.sandbox import LogFiles, Sandbox, own_queues, own_schema
from local.demo.snapshot import Snapshot, take_snapshot, watching_queues
from local.farm import Farm, demo_specs
from local.farm.count import Count, count
from local.servers import keep_running
from local.settings import child_environment
from local.supervisor import Supervisor, all_processes
from services.admin.registry import NewFeed, add_feed, connect
from shared.broker.topology import build_topology
from shared.database.migrate import migrate
from shared.errors import ConfigurationError

WAVES = 2
"""So often new articles appear while the demo runs."""

WAVE_SECONDS = 3.0
QUIET_SECONDS = 3.0
"""The demo goes on so long after the last expected article, since a duplicate could still come."""

LONGEST_SECONDS = 90.0
LOOK_SECONDS = 0.25

DELAYS: dict[str, Any] = {"fast_delay_seconds": 1.0, "retry_delay_seconds": 2.0, "message_retry_seconds": 1.0}
SHARDS = 4

SETTINGS = {
    # All spans are shortened, so that half a minute shows the behaviour of a day. No rule is switched off ...
    "FEEDMILL_FAST_DELAY_SECONDS": str(DELAYS["fast_delay_seconds"]),
    "FEEDMILL_RETRY_DELAY_SECONDS": str(DELAYS["retry_delay_seconds"]),
    "FEEDMILL_MESSAGE_RETRY_SECONDS": str(DELAYS["message_retry_seconds"]),
    "FEEDMILL_FETCHER_SHARDS": str(SHARDS),
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.05",
    "FEEDMILL_CONNECT_FAILURE_SECONDS": "1",
    "FEEDMILL_THROTTLE_SECONDS": "1",
    "FEEDMILL_FETCH_DEADLINE_SECONDS": "10",
    "FEEDMILL_CLAIM_SECONDS": "15",
    "FEEDMILL_TICK_SECONDS": "0.2",
    "FEEDMILL_MIN_POLL_SECONDS": "1",
    "FEEDMILL_MAX_POLL_SECONDS": "3",
    "FEEDMILL_GONE_SPAN_SECONDS": "1",
    "FEEDMILL_MOVED_SPAN_SECONDS": "2",
    # ... and the farm's own network is the only exemption from the address guard.
    "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    "FEEDMILL_FETCH_THREADS": "16",
    "FEEDMILL_METRICS_PORT": "0",
}


class Demo:
    """One run. `snapshot` is its present state."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._farm = Farm(demo_specs())
        self._ids: dict[str, int] = {}
        self._started = time.monotonic()
        self.snapshot = Snapshot()

    async def run(self) -> Count:
        """Run the demo and return the count."""
        topology = build_topology(**DELAYS, fetcher_shards=SHARDS)
        with own_schema(self._sandbox) as database_url, self._farm, contextlib.ExitStack() as files:
            migrate(database_url)
            self._register(database_url)
            addresses = Addresses(self._sandbox.addresses.amqp_url, database_url)
            log = LogFiles(self._sandbox.logs, files).write
            supervisor = Supervisor(all_processes(), child_environment(addresses.environment() | SETTINGS), log)
            async with (
                own_queues(self._sandbox, topology) as broker,
                keep_running(self._sandbox.servers, lambda line: log("servers", line)),
                watching_queues(broker, topology) as depths,
                supervisor.run(),
            ):
                await self._play(supervisor, depths, database_url)
            return count(self._farm, self._ids, database_url, elapsed=time.monotonic() - self._started)

    def _register(self, database_url: str) -> None:
        with connect(database_url) as connection:
            for spec in self._farm.specs:
                self._ids[spec.name], _ = add_feed(connection, NewFeed(self._farm.url(spec), name=spec.name))

    async def _play(self, supervisor: Supervisor, depths: Mapping[str, int], database_url: str) -> None:
        """Publish the waves; return soon after all expected articles are there, or after `LONGEST_SECONDS`."""
        self._started = time.monotonic()
        complete_since: float | None = None
        while (elapsed := time.monotonic() - self._started) < LONGEST_SECONDS:
            if supervisor.failed.is_set():
                raise ConfigurationError(f"a service refused its configuration: see {self._sandbox.logs}")
            if self._farm.wave < WAVES and elapsed > WAVE_SECONDS * (self._farm.wave + 1):
                self._farm.publish()
            with contextlib.suppress(psycopg.OperationalError):  # somebody killed the server; it is restarted soon
                self.snapshot = await take_snapshot(depths, database_url, self._farm, elapsed)
            if not (self._farm.wave == WAVES and self.snapshot.complete):
                complete_since = None
            elif complete_since is None:
                complete_since = elapsed
            elif elapsed - complete_since > QUIET_SECONDS:
                return
            await asyncio.sleep(LOOK_SECONDS)
