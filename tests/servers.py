"""The servers of a test run: one pair for all workers, and private pairs for tests that kill servers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from local.servers import PrivatePostgres, PrivateRabbitMQ, Servers, delete_servers, private_servers
from local.servers.cluster import DATA_NAME, place_cluster
from local.servers.identity import FILE_NAME, PostgresIdentity, RabbitMQIdentity
from shared.database.migrate import migrate
from shared.errors import ConfigurationError

HOME = Path(__file__).parent.parent / ".feedmill" / "test"

MIGRATED = "migrated"
"""The database that tests copy theirs from: the migrations take ten times as long."""

START_SECONDS = 180


def new_directory() -> Path:
    """Return a place for a pair; delete those of runs that were killed."""
    for left in HOME.glob("servers-*"):
        with contextlib.suppress(ConfigurationError):  # a run beside this one uses it
            delete_servers(left)
            _state(left).unlink(missing_ok=True)
    return HOME / f"servers-{uuid4().hex[:8]}"


@contextlib.contextmanager
def running_pair(directory: Path) -> Iterator[Servers]:
    """Run a pair for the length of the block, with the database `MIGRATED`."""
    try:
        with private_servers(directory, durable=False) as servers:
            servers.postgres.create_database(MIGRATED)
            migrate(servers.postgres.database_url(MIGRATED))
            yield servers
    finally:
        delete_servers(directory)


class SharedPair:
    """A pair that the controller of the workers runs, on a thread; workers `attach` to it."""

    def __init__(self) -> None:
        self.directory = new_directory()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shared servers")
        self._thread.start()

    def stop(self) -> None:
        """End the servers and delete their data."""
        self._stop.set()
        self._thread.join()
        _state(self.directory).unlink(missing_ok=True)

    def _run(self) -> None:
        state = _state(self.directory)
        state.parent.mkdir(parents=True, exist_ok=True)
        try:
            with running_pair(self.directory):
                _write(state, "")
                self._stop.wait()
        except Exception as error:
            _write(state, str(error) or repr(error))
            raise


def attach(directory: Path) -> Servers:
    """Return the pair that another process runs, as soon as it is ready. It can't be killed or started from here.

    Raises:
        ConfigurationError: it could not be started; says why.
    """
    deadline = time.monotonic() + START_SECONDS
    while not _state(directory).exists():
        if time.monotonic() > deadline:
            raise ConfigurationError(f"the shared servers in {directory} did not start within {START_SECONDS} s")
        time.sleep(0.1)
    if failure := _state(directory).read_text(encoding="utf-8"):
        raise ConfigurationError(f"the shared servers could not be started: {failure}")
    place = directory.resolve()
    rabbitmq, postgres = PrivateRabbitMQ(place / "rabbitmq"), PrivatePostgres(place / "postgres", durable=False)
    rabbitmq._identity = RabbitMQIdentity.model_validate_json((rabbitmq.directory / FILE_NAME).read_bytes())
    rabbitmq._data = place_cluster(rabbitmq.directory, "rabbitmq") / DATA_NAME
    postgres._identity = PostgresIdentity.model_validate_json((postgres.directory / FILE_NAME).read_bytes())
    return Servers(rabbitmq, postgres)


def _state(directory: Path) -> Path:
    """Return the file that appears when the pair is ready, or could not be started: it then says why."""
    return directory.with_name(f"state-of-{directory.name}")


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
