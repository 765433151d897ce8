"""Asks the database what a secret allows; who was let in before need not wait for a server that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from services.admin.access.tokens import Grant
from shared.database.postgres import Connection, Database
from shared.errors import DatabaseUnavailable
from shared.waiting import retrieve_error

Find = Callable[[Connection, bytes], Awaitable[Grant | None]]

PATIENCE_SECONDS = 1.0


class Asking:
    """Asks for grants.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._begun: dict[asyncio.Task[Grant | None], float] = {}

    async def find(self, find: Find, hashed: bytes, *, patiently: bool) -> Grant | None:
        """Return what a secret allows; None: nothing.

        Args:
            find: asks for a token or a session.
            hashed: the secret's hash.
            patiently: wait for as long as the pool does. Otherwise an answer that does not come soon is an error, at
                once while an earlier one is outstanding. (The question goes on: to cancel it would take as long.)

        Raises:
            DatabaseUnavailable: the database is away, or takes too long.
        """
        if not patiently and any(time.monotonic() - begun > PATIENCE_SECONDS for begun in self._begun.values()):
            raise DatabaseUnavailable("PostgreSQL does not answer")
        task = asyncio.create_task(self._find(find, hashed))
        self._begun[task] = time.monotonic()
        task.add_done_callback(self._note_end)
        await asyncio.wait({task}, timeout=None if patiently else PATIENCE_SECONDS)
        if not task.done():
            raise DatabaseUnavailable("PostgreSQL does not answer")
        return task.result()

    def _note_end(self, task: asyncio.Task[Grant | None]) -> None:
        del self._begun[task]
        retrieve_error(task)

    async def _find(self, find: Find, hashed: bytes) -> Grant | None:
        async with self._database.transaction() as connection:
            return await find(connection, hashed)
