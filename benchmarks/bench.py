"""Tools of every subject: throw-away servers, a fresh vhost and database, publishing in bulk, waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

from benchmarks.cpu import family_cpu_seconds
from benchmarks.laps import BenchError
from local.addresses import Addresses
from local.servers import Servers, throw_away_servers
from services.fetcher.settings import FetcherSettings
from shared.broker.port import Publication, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.database.migrate import migrate
from shared.database.postgres import Database
from shared.settings import BrokerSettings, read_settings

HOME = Path(__file__).parent.parent / ".feedmill" / "bench"
LOGS = HOME / "logs"
IN_FLIGHT = 100
LOOK_SECONDS = 0.03


@dataclass(frozen=True)
class Bench:
    """The servers, given to each subject."""

    servers: Servers
    quick: bool

    @property
    def threads(self) -> int:
        """The number of threads of a fetcher with the settings of this environment."""
        settings = read_settings(FetcherSettings)
        return min(settings.fetch_threads, settings.max_active)

    def make_place(self, name: str) -> Addresses:
        """Return the addresses of a new vhost and of a new, migrated database."""
        name = f"{name}_{uuid4().hex[:6]}"
        self.servers.rabbitmq.create_vhost(name)
        self.servers.postgres.create_database(name)
        migrate(self.servers.postgres.database_url(name))
        return Addresses(self.servers.rabbitmq.amqp_url(name), self.servers.postgres.database_url(name))

    def server_cpu_seconds(self) -> dict[str, float]:
        """Return the CPU seconds of broker and database so far."""
        return {
            "broker": family_cpu_seconds(self.servers.rabbitmq.process_ids()),
            "database": family_cpu_seconds(self.servers.postgres.process_ids()),
        }


@contextmanager
def open_bench(*, quick: bool) -> Iterator[Bench]:
    """Yield a bench. Its servers sync to disk as in production, and are deleted at the end."""
    with throw_away_servers(HOME, durable=True) as servers:
        yield Bench(servers, quick)


async def vacuum(database: Database, table: str) -> None:
    """Vacuum and analyze a table."""
    async with database.transaction() as connection:
        await connection.set_autocommit(True)
        await connection.execute(f"VACUUM ANALYZE {table}".encode())
        await connection.set_autocommit(False)


def read_number(connection: psycopg.Connection, query: str) -> int:
    """Return the one number that the query gives."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def read_topology() -> Topology:
    """Return the topology of the services of this environment."""
    return read_settings(BrokerSettings).topology()


@asynccontextmanager
async def open_session(amqp_url: str, topology: Topology) -> AsyncIterator[Session]:
    """Yield a session; the topology is declared."""
    broker = RabbitMQ(amqp_url, name="feedmill bench", max_message_bytes=15 * 1024 * 1024)
    async with broker.connect(topology) as session:
        yield session


async def publish_all(session: Session, publications: Sequence[Publication]) -> None:
    """Publish with confirms, many in flight."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def publish(publication: Publication) -> None:
        async with slots:
            await session.publish(publication)

    await asyncio.gather(*map(publish, publications))


async def wait_until(
    done: Callable[[], Awaitable[bool]], *, what: str, seconds: float, check: Callable[[], None]
) -> float:
    """Wait until `done`; return the time (monotonic seconds).

    Raises:
        BenchError: it was not within `seconds`; or what `check` raises.
    """
    deadline = time.monotonic() + seconds
    while not await done():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds:.0f} s")
        check()
        await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic()
