"""PostgreSQL: the connection pool, and what its errors mean."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from shared.errors import DatabaseBusy, DatabaseUnavailable
from shared.observability.secrets import mask_credentials
from shared.waiting import keep_trying

log = logging.getLogger(__name__)

SCHEMA_VERSION = 21
"""The migration that this code needs; a test compares it with shared/database/migrations/."""

POOL_TIMEOUT_SECONDS = 3.0
CLOSE_SECONDS = 0.5
"""How long the end waits for connections that are being made: a server that hangs makes none."""

Connection = psycopg.AsyncConnection[DictRow]

# The server is away, going down, full or overloaded. Everything else is a bug or bad data.
_AWAY = (
    psycopg.OperationalError,  # connection lost, admin shutdown, too many connections, disk full, timeouts
    psycopg.InterfaceError,  # the connection is closed
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,  # our transaction was idle for too long
    errors.TransactionTimeout,
    errors.ReadOnlySqlTransaction,  # a fail-over, or a managed database whose disk is full
    PoolTimeout,
)

# Subclasses of the above that concern the data: the same data would fail again.
_DATA = (errors.ProgramLimitExceeded, errors.StatementTooComplex)

# These concern one piece of work; the server can serve others.
_BUSY = (errors.QueryCanceled, errors.LockNotAvailable)

LIVELINESS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Arguments of every connection: a server that vanishes is noticed within a minute, not after TCP's two hours."""

LOCK_SECONDS = 3.0
"""The longest wait for a lock, or half of the statement timeout if that is less. Far longer than our transactions hold
a lock, and short enough for a batch to be halved until the blocked message stands alone."""

IDLE_SECONDS = 60.0
"""How long a command's transaction may be idle; a service's may be idle for the statement timeout. Then the server ends
it: a frozen process must not keep its locks."""

# Set for one transaction only: behind a PgBouncer the next one on this connection is somebody else's. The `tcp_`
# settings are for a client that vanishes while the server sends to it.
_BOUNDS = """
SELECT set_config('idle_in_transaction_session_timeout', %(idle)s, true),
    set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true),
    set_config('lock_timeout', coalesce(%(lock)s, current_setting('lock_timeout')), true),
    set_config('tcp_keepalives_idle', '30', true), set_config('tcp_keepalives_interval', '10', true),
    set_config('tcp_keepalives_count', '3', true), set_config('tcp_user_timeout', '30s', true),
    set_config('jit', 'off', true)
"""
"""No statement is compiled: arrays let the planner expect far more rows than there are."""


def transaction_bounds(
    statement_seconds: float | None = None, *, lock_seconds: float | None = None
) -> tuple[bytes, dict[str, str | None]]:
    """Return the first statement of a transaction, which bounds its duration, and the statement's arguments.

    Args:
        statement_seconds: a statement that takes longer is cancelled; None: the server's configuration decides.
        lock_seconds: a statement that waits longer for a lock is cancelled; None: `LOCK_SECONDS` where statements have
            a bound.
    """
    if lock_seconds is None and statement_seconds is not None:
        lock_seconds = min(LOCK_SECONDS, statement_seconds / 2)
    lock = None if lock_seconds is None else _milliseconds(lock_seconds)
    statement = None if statement_seconds is None else _milliseconds(statement_seconds)
    return _BOUNDS.encode(), {"idle": statement or _milliseconds(IDLE_SECONDS), "statement": statement, "lock": lock}


def _milliseconds(seconds: float) -> str:
    return f"{max(seconds * 1000, 1):.0f}ms"


class Database:
    """A pool of connections that yields transactions and raises our errors.

    Args:
        url: of the server, or of a PgBouncer in front of it.
        size: connections, at most.
        prepared: use prepared statements. Behind a PgBouncer in transaction mode this takes version 1.21 or newer,
            configured to track them.
        statement_seconds: a statement that takes longer is cancelled, and so is an idle transaction. None: no bound.
    """

    def __init__(self, url: str, *, size: int, prepared: bool = True, statement_seconds: float | None = None) -> None:
        self._url = url
        self._bounds = transaction_bounds(statement_seconds) if statement_seconds else None
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            connection_class=psycopg.AsyncConnection[DictRow],
            kwargs={
                "row_factory": dict_row,
                "application_name": "feedmill",
                **({} if prepared else {"prepare_threshold": None}),
                **LIVELINESS,
            },
            min_size=0,
            max_size=size,
            timeout=POOL_TIMEOUT_SECONDS,
            reconnect_timeout=POOL_TIMEOUT_SECONDS,  # with a longer one the pool's growing pauses outlast the outage
            check=AsyncConnectionPool.check_connection,
            open=False,
        )
        self._trouble: str | None = "not used yet"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Database]:
        """Open the pool for the length of the block. Connects lazily: the server may be away."""
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # we report failures ourselves
        await self._pool.open(wait=False)
        try:
            yield self
        finally:
            await self._pool.close(CLOSE_SECONDS)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction: committed at the end of the block, rolled back on an exception.

        Raises:
            DatabaseUnavailable: the server is away or can't serve now. Nothing of the block was committed, or (if the
                connection was lost during COMMIT) all of it.
            DatabaseBusy: a DatabaseUnavailable for this work only; the server may serve other work.
        """
        try:
            async with self._pool.connection() as connection:
                if self._bounds:
                    await connection.execute(*self._bounds)
                yield connection
        except _DATA:
            raise
        except _BUSY as error:
            raise DatabaseBusy(f"{mask_credentials(self._url)}: {_describe(error)}") from error
        except _AWAY as error:
            self._trouble = f"{mask_credentials(self._url)}: {_describe(error)}"
            raise DatabaseUnavailable(self._trouble) from error
        self._trouble = None

    async def read_clock(self) -> datetime:
        """Return the server's time. Raises DatabaseUnavailable."""
        async with self.transaction() as connection:
            cursor = await connection.execute("SELECT clock_timestamp() AS moment")
            row = await cursor.fetchone()
        assert row is not None
        moment: datetime = row["moment"]
        return moment

    def check(self) -> str | None:
        """Return the error of the last transaction, if it failed (a `telemetry.Check`)."""
        return self._trouble

    async def require_schema(self) -> None:
        """Check that the migrations were applied.

        Raises:
            DatabaseUnavailable: not yet; `feedmill migrate` will do it, and may be running.
        """
        async with self.transaction() as connection:
            try:
                cursor = await connection.execute("SELECT coalesce(max(version), 0) AS v FROM schema_migrations")
                row = await cursor.fetchone()
            except errors.UndefinedTable as error:
                raise DatabaseUnavailable("the tables are not there yet: run `feedmill migrate`") from error
        version = row["v"] if row else 0
        if version < SCHEMA_VERSION:
            raise DatabaseUnavailable(f"the schema is at {version}, needs {SCHEMA_VERSION}: run `feedmill migrate`")
        if version > SCHEMA_VERSION:
            log.warning("the schema is at %s, newer than this code's %s", version, SCHEMA_VERSION)


async def tables_found(database: Database, stop: asyncio.Event) -> bool:
    """Wait until the migrations were applied; return False if the service is stopped before."""
    try:
        await keep_trying(database.require_schema, what="looking for the tables", until=(stop,))
    except DatabaseUnavailable as error:
        log.info("stopped while the tables were not there: %s", error)
        return False
    return True


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it does not answer in time"
    return mask_credentials(" ".join(str(error).split())) or type(error).__name__
