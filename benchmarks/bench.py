"""The ground that subjects stand on: throw-away servers, and a fresh vhost and database for each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from benchmarks.cpu import family_cpu_seconds
from local.addresses import Addresses
from local.servers import Servers, delete_servers, private_servers
from services.fetcher.settings import FetcherSettings
from shared.database.migrate import migrate
from shared.errors import ConfigurationError
from shared.settings import read_settings

HOME = Path(__file__).parent.parent / ".feedmill" / "bench"
LOGS = HOME / "logs"


@dataclass(frozen=True)
class Bench:
    """What a subject is given."""

    servers: Servers
    quick: bool

    @property
    def threads(self) -> int:
        """As many as a fetcher has with the settings of this environment."""
        settings = read_settings(FetcherSettings)
        return min(settings.fetch_threads, settings.max_active)

    def make_place(self, name: str) -> Addresses:
        """Return the addresses of a vhost and of a migrated database that nobody else uses."""
        name = f"{name}_{uuid4().hex[:6]}"
        self.servers.rabbitmq.create_vhost(name)
        self.servers.postgres.create_database(name)
        migrate(self.servers.postgres.database_url(name))
        return Addresses(self.servers.rabbitmq.amqp_url(name), self.servers.postgres.database_url(name))

    def server_cpu_seconds(self) -> dict[str, float]:
        """Return what broker and database have cost so far."""
        return {
            "broker": family_cpu_seconds(self.servers.rabbitmq.process_ids()),
            "database": family_cpu_seconds(self.servers.postgres.process_ids()),
        }


@contextmanager
def open_bench(*, quick: bool) -> Iterator[Bench]:
    """Yield a bench; its servers wait for the disk as real ones do, and are deleted at the end."""
    HOME.mkdir(parents=True, exist_ok=True)
    for left in HOME.glob("servers-*"):  # by a run that was killed
        with contextlib.suppress(ConfigurationError):  # in use by another run
            delete_servers(left)
    directory = HOME / f"servers-{uuid4().hex[:8]}"
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(delete_servers, directory)
        yield Bench(cleanup.enter_context(private_servers(directory, durable=True)), quick)
