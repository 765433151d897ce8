"""A PostgreSQL cluster of our own, from the system's package, beside whatever the machine runs itself.

It listens on the loopback address only and has no Unix socket; passwords are checked with SCRAM.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from local.servers.cluster import DATA_NAME, find_account, give, place_cluster, remove_stale_lock
from local.servers.identity import PostgresIdentity, start_on_free_ports, write_private
from local.servers.processes import Command, ServerProcess, describe_log, end_leftover
from shared.errors import ConfigurationError, DatabaseUnavailable

DEFAULT_DATABASE = "feedmill"
USER = "postgres"
"""The account of the server if we are root."""
READY_SECONDS = 60.0
STOP_SECONDS = 30.0
INITDB_SECONDS = 120.0
VERSIONS = Path("/usr/lib/postgresql")
CONNECT_SECONDS = 10
STRATEGIES_VERSION = 15_00_00
"""The first PostgreSQL that can be told how it copies a database; those before copy files."""
# Not synchronous_commit: with it off, a server that is killed (our fault tests do) loses commits that it had reported.
THROW_AWAY = {"fsync": "off", "full_page_writes": "off"}


class PrivatePostgres:
    """The cluster whose data, password and port live in `directory`; one object at a time may use it.

    `durable=False` is for data to be thrown away: the server then doesn't wait for the disk. It still survives
    `kill()`, but not the machine's own crash.
    """

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = directory
        self.log = directory / "postgres.log"
        self._durable = durable
        self._identity: PostgresIdentity | None = None
        self._server: ServerProcess | None = None

    @property
    def identity(self) -> PostgresIdentity:
        """The cluster's user, password and port; known from the first start on."""
        if self._identity is None:
            raise RuntimeError("this PostgreSQL was never started: it has no port yet")
        return self._identity

    def database_url(self, name: str = DEFAULT_DATABASE) -> str:
        """Return the URL of a database, credentials included."""
        known = self.identity
        return f"postgresql://{known.user}:{known.password}@127.0.0.1:{known.port}/{name}"

    def start(self) -> None:
        """Start the server and return when it takes connections and the database is there.

        Does nothing if it runs. The first start of this object ends the server of an earlier run and chooses the
        port; later ones keep it. Raises ConfigurationError, with the log's last lines, if it can't be started.
        """
        if self.is_running():
            return
        if self._identity is None:
            start_on_free_ports(self._take_over, self._start)
        else:
            self._start()

    def _start(self) -> None:
        data = self._prepare_data()
        try:
            self._server = ServerProcess(self._server_command(data))
            self._server.wait_until_ready(self._missing, READY_SECONDS)
            self._create_default_database()
        except BaseException:
            self.kill()
            raise

    def stop(self, fast: bool = False) -> None:
        """Stop the server and close its connections; `fast` skips the checkpoint: the next start recovers."""
        if self._server is not None:
            self._server.end(signal.SIGQUIT if fast else signal.SIGINT, STOP_SECONDS)

    def kill(self) -> None:
        """End the server and all its backends with SIGKILL."""
        if self._server is not None:
            self._server.end(signal.SIGKILL, 0)

    def is_running(self) -> bool:
        """Return whether the server's process runs."""
        return self._server is not None and self._server.is_running()

    def process_ids(self) -> list[int]:
        """Return the pid of the server if it runs."""
        return [self._server.id.pid] if self._server is not None and self._server.is_running() else []

    def create_database(self, name: str, template: str = "template1") -> None:
        """Create a database like `template`, by default an empty one.

        Raises DatabaseUnavailable if it exists, if somebody is using the template, or if the server is away.
        """
        names = (sql.Identifier(name), sql.Identifier(template))
        with self._connect() as connection:
            # A copy of files must be on the disk at once, but takes half the CPU time of one that the log has, too.
            by_files = not self._durable and connection.info.server_version >= STRATEGIES_VERSION
            strategy = sql.SQL("STRATEGY file_copy" if by_files else "")
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} {}").format(*names, strategy))

    def drop_database(self, name: str) -> None:
        """Drop a database, closing its connections; none of that name is fine too.

        Raises DatabaseUnavailable if the server is away.
        """
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def end_leftovers(self) -> None:
        """End the process that a killed run left, if any."""
        end_leftover(self._record, signal.SIGINT)

    @property
    def _record(self) -> Path:
        return self.directory / "server.process.json"

    def _take_over(self) -> PostgresIdentity:
        self.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.directory.chmod(0o711)  # whatever the umask: the server's account passes through
        self.end_leftovers()
        self._identity = known = PostgresIdentity.take(self.directory)
        return known

    def _prepare_data(self) -> Path:
        """Return the cluster's data directory, made if there is none yet. Raises ConfigurationError."""
        data = place_cluster(self.directory, USER) / DATA_NAME
        if (data / "PG_VERSION").exists():
            remove_stale_lock(data)
        else:
            self._initialise(data)
        return data

    def _initialise(self, data: Path) -> None:
        """Run initdb beside the place, then move the result there: a half-made cluster is never found again."""
        draft = data.with_name("data.new")
        password_file = data.with_name("password")
        account = find_account(data, USER)
        if account is None and os.geteuid() == 0:
            raise ConfigurationError(f"there is no user `{USER}` (Debian package postgresql): run `make setup`")
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        write_private(password_file, self.identity.password)
        argv = [str(find_binaries(None) / "initdb"), "--pgdata", str(draft), "--username", self.identity.user]
        argv += ["--pwfile", str(password_file), "--auth", "scram-sha-256"]
        argv += ["--encoding", "UTF8", "--locale", "C.UTF-8"]
        argv += [] if self._durable else ["--no-sync"]
        if account is not None:
            for path in (draft, password_file):
                give(path, account)
            argv = ["setpriv", *account.setpriv(), "--", *argv]
        try:
            self._run_initdb(argv)
        finally:
            password_file.unlink()
        draft.rename(data)

    def _run_initdb(self, argv: list[str]) -> None:
        with self.log.open("ab") as log:
            try:
                subprocess.run(
                    argv,
                    env=self._environment(),
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    check=True,
                    timeout=INITDB_SECONDS,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise ConfigurationError(f"initdb failed ({error}). {describe_log(self.log)}") from error

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}

    def _server_command(self, data: Path) -> Command:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.identity.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        settings |= {} if self._durable else THROW_AWAY
        argv = [str(find_binaries(data) / "postgres"), "-D", str(data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return Command(
            "PostgreSQL", argv, self._environment(), self.log, self._record, "INT", account=find_account(data, USER)
        )

    def _missing(self) -> str | None:
        try:
            self._execute(sql.SQL("SELECT 1"))
        except DatabaseUnavailable as error:
            return str(error)
        return None

    def _create_default_database(self) -> None:
        with self._connect() as connection:
            query = "SELECT FROM pg_database WHERE datname = %s"
            exists = connection.execute(query, [DEFAULT_DATABASE]).fetchone() is not None
        if not exists:
            self.create_database(DEFAULT_DATABASE)

    def _execute(self, statement: sql.SQL | sql.Composed) -> None:
        with self._connect() as connection:
            connection.execute(statement)

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        url = self.database_url("postgres")
        try:
            with psycopg.connect(
                url, autocommit=True, connect_timeout=CONNECT_SECONDS, sslmode="disable"
            ) as connection:
                yield connection
        except psycopg.Error as error:
            raise DatabaseUnavailable(f"the private PostgreSQL: {error}") from error


def find_binaries(data: Path | None) -> Path:
    """Return the newest installed PostgreSQL's programs, or those that an existing data directory needs.

    Raises ConfigurationError if that version, or any, is not installed.
    """
    needed = (data / "PG_VERSION").read_text(encoding="ascii").strip() if data is not None else "*"
    installed = [p.parent for p in VERSIONS.glob(f"{needed}/bin/postgres") if p.with_name("initdb").exists()]
    if installed:
        return max(installed, key=lambda path: [int(part) for part in path.parent.name.split(".")])
    if data is None:
        raise ConfigurationError("PostgreSQL's server is not installed (Debian package postgresql): run `make setup`")
    raise ConfigurationError(
        f"{data} was made by PostgreSQL {needed}, which is no longer installed: install Debian package"
        f" postgresql-{needed}, or start anew with `make clean`, without the data"
    )
