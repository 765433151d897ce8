"""Both servers together: one process at a time may use a directory; no server outlives its owner."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from local.servers.cluster import delete_cluster, place_in_memory
from local.servers.postgres import PrivatePostgres, find_binaries
from local.servers.rabbitmq import PrivateRabbitMQ
from shared.errors import ConfigurationError
from shared.waiting import pause

LOCK_NAME = "lock"
ABORT_POLL_SECONDS = 0.2
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Servers:
    """A running broker and a running database, and how to reach them; the URLs hold the credentials."""

    rabbitmq: PrivateRabbitMQ
    postgres: PrivatePostgres

    @property
    def amqp_url(self) -> str:
        """The broker's default virtual host."""
        return self.rabbitmq.amqp_url()

    @property
    def database_url(self) -> str:
        """The default database."""
        return self.postgres.database_url()

    @property
    def management_url(self) -> str:
        """The management UI and API, without credentials."""
        return self.rabbitmq.management_url


@contextlib.contextmanager
def private_servers(directory: Path, *, durable: bool = True) -> Iterator[Servers]:
    """Run RabbitMQ and PostgreSQL on data in this directory while the context lasts.

    The directory keeps the data, credentials and (if they are still free) ports from run to run. With
    `durable=False`, for data to be thrown away, it is in memory if there is room; they don't wait for the disk, and are
    killed instead of stopped.
    The servers end with this process, however it ends; the next run ends any that are left.
    Raises ConfigurationError if another process uses the directory or a server can't be started.
    """
    with hold_directory(directory) as place:
        rabbitmq = PrivateRabbitMQ(place / "rabbitmq")
        postgres = PrivatePostgres(place / "postgres", durable=durable)
        if not durable:
            place_in_memory(rabbitmq.directory)
            place_in_memory(postgres.directory)
        try:
            _side_by_side(rabbitmq.start, postgres.start, abort=lambda: _kill_both(rabbitmq, postgres))
            yield Servers(rabbitmq, postgres)
        finally:
            _side_by_side(
                lambda: rabbitmq.stop(fast=not durable),
                lambda: postgres.stop(fast=not durable),
                abort=lambda: _kill_both(rabbitmq, postgres),
            )


@contextlib.contextmanager
def throw_away_servers(home: Path, *, durable: bool) -> Iterator[Servers]:
    """Run both servers in a new directory below `home`, and delete it at the end.

    Directories that killed runs left there are deleted first. Raises ConfigurationError as `private_servers` does.
    """
    for left in home.glob("servers-*"):
        with contextlib.suppress(ConfigurationError):  # another run uses it
            delete_servers(left)
    directory = home / f"servers-{uuid4().hex[:8]}"
    try:
        with private_servers(directory, durable=durable) as servers:
            yield servers
    finally:
        delete_servers(directory)


@contextlib.contextmanager
def private_database(directory: Path) -> Iterator[str]:
    """Run only PostgreSQL on data in this directory while the context lasts; yield its URL.

    Raises ConfigurationError as `private_servers` does.
    """
    with hold_directory(directory) as place:
        postgres = PrivatePostgres(place / "postgres")
        try:
            postgres.start()
            yield postgres.database_url()
        finally:
            postgres.stop()


def is_installed() -> bool:
    """Return whether this machine has what a private PostgreSQL needs."""
    try:
        find_binaries(None)
    except ConfigurationError:
        return False
    return True


def delete_servers(directory: Path) -> None:
    """Delete a server directory with all its data, also outside of it. Do nothing if it does not exist.

    Raises ConfigurationError if a process uses it.
    """
    if not directory.exists():
        return
    with hold_directory(directory) as place:
        PrivateRabbitMQ(place / "rabbitmq").end_leftovers()
        PrivatePostgres(place / "postgres").end_leftovers()
        delete_cluster(place / "rabbitmq")
        delete_cluster(place / "postgres")
        shutil.rmtree(place)


@contextlib.contextmanager
def hold_directory(directory: Path) -> Iterator[Path]:
    """Make the directory if necessary, and lock it while the context lasts; yield its resolved path.

    Raises ConfigurationError, naming the process, if another one uses it.
    """
    descriptor = -1
    while descriptor < 0:
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        place = directory.resolve()
        descriptor = _take_lock(place / LOCK_NAME)
    try:
        yield place
    finally:
        os.close(descriptor)


def is_held(directory: Path) -> bool:
    """Return whether a process uses this server directory at the moment."""
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _take_lock(path: Path) -> int:
    """Return the descriptor that holds the lock, or -1 if the file was deleted while we took it: try again."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return -1
    except PermissionError as error:
        raise ConfigurationError(f"{path} belongs to another user: run as that user, or `make clean` as it") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0)
        os.close(descriptor)
        raise ConfigurationError(_describe_holder(path.parent, holder)) from error
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor
    os.close(descriptor)
    return -1


def _describe_holder(place: Path, written: bytes) -> str:
    pid = written.decode(errors="replace").strip() or "unknown"
    with contextlib.suppress(OSError):
        command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:100]
        pid += f", {command.strip()}"
    return f"the servers in {place} are in use by another process (pid {pid}): stop it first"


def _side_by_side(*tasks: Callable[[], None], abort: Callable[[], None]) -> None:
    """Run the tasks in threads at the same time; if one fails or Ctrl-C comes, `abort` the others; raise it."""
    with ThreadPoolExecutor(len(tasks), thread_name_prefix="servers") as pool:
        running: list[Future[None]] = [pool.submit(task) for task in tasks]
        try:
            done, _ = wait(running, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            # Repeatedly: a start that is under way may reach the server itself only now.
            while wait(running, timeout=ABORT_POLL_SECONDS).not_done:
                abort()
            raise


def _kill_both(rabbitmq: PrivateRabbitMQ, postgres: PrivatePostgres) -> None:
    rabbitmq.kill()
    postgres.kill()


@contextlib.asynccontextmanager
async def keep_running(servers: Servers | None, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Restart private servers that die during the block. Do nothing for None: servers of the environment."""
    if servers is None:
        yield
        return
    restarting = asyncio.create_task(_restart_dead(servers, say))
    try:
        yield
    finally:
        restarting.cancel()
        await asyncio.wait({restarting})


async def _restart_dead(servers: Servers, say: Callable[[str], None]) -> None:
    while True:
        await pause(LOOK_SECONDS)
        for server in (servers.rabbitmq, servers.postgres):
            if not server.is_running():
                say(f"{type(server).__name__} died, starting it again")
                try:
                    await _start(server)
                except (ConfigurationError, OSError) as error:
                    say(f"it can't be started, trying again: {error}")


async def _start(server: PrivateRabbitMQ | PrivatePostgres) -> None:
    starting = asyncio.create_task(asyncio.to_thread(server.start))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        # A thread can't be cancelled, and the servers must not be stopped while one is half started.
        await asyncio.wait({starting})
        raise
