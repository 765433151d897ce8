"""Answers that are kept, so that a creation that is sent twice with one key happens once (table `idempotency_keys`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

from psycopg.types.json import Json

from services.admin.errors import Conflict, Invalid
from shared.database.postgres import Connection

KEPT_SECONDS = 86_400

LOCK_SECONDS = 150
"""Longer than any request may take. A request without an answer after that died, and its key may be used again."""


@dataclass(frozen=True)
class Answer:
    """An answer as it was given."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    """None: it held a secret, and was not kept."""


@dataclass(frozen=True)
class Key:
    """A key that a request holds while it makes its answer."""

    token_id: int
    key: str
    run: UUID


class KeyBusy(Conflict):
    """The first request with this key still runs, or died.

    Args:
        seconds: for which its hold may last.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(
            "the first request with this Idempotency-Key still runs, or died: ask again later; the key is free in"
            f" {seconds} s at the latest"
        )
        self.seconds = seconds


async def take_key(connection: Connection, token_id: int, key: str, request_hash: bytes) -> Key | Answer:
    """Return the key, to make the answer, or the answer that there is.

    Raises:
        Invalid: the key was used for another request.
        KeyBusy: the first request with it still runs, or died.
    """
    run = uuid4()
    names = {
        "token": token_id,
        "key": key,
        "hash": request_hash,
        "run": run,
        "lock": LOCK_SECONDS,
        "kept": KEPT_SECONDS,
    }
    cursor = await connection.execute(
        """
        INSERT INTO idempotency_keys AS held (token_id, key, request_hash, run, locked_until)
        VALUES (%(token)s, %(key)s, %(hash)s, %(run)s, now() + make_interval(secs => %(lock)s))
        ON CONFLICT (token_id, key) DO UPDATE SET
            request_hash = excluded.request_hash, run = excluded.run, locked_until = excluded.locked_until,
            status = NULL, headers = '{}', body = NULL, created_at = now()
        WHERE held.created_at < now() - make_interval(secs => %(kept)s)
            OR (held.status IS NULL AND held.locked_until < now() AND held.request_hash = excluded.request_hash)
        RETURNING run
        """,
        names,
    )
    if await cursor.fetchone():
        return Key(token_id, key, run)
    cursor = await connection.execute(
        "SELECT request_hash, status, headers, body, extract(epoch FROM locked_until - now())::float8 AS seconds_left"
        " FROM idempotency_keys WHERE token_id = %(token)s AND key = %(key)s",
        names,
    )
    row = await cursor.fetchone()
    if row is None or (row["status"] is None and row["request_hash"] == request_hash):
        raise KeyBusy(min(max(math.ceil(row["seconds_left"]), 1), LOCK_SECONDS) if row else 1)
    if row["request_hash"] != request_hash:
        raise Invalid(
            "this Idempotency-Key was used for another request: take a new key for each creation",
            "header.idempotency-key",
        )
    return Answer(row["status"], row["headers"], row["body"])


async def keep_answer(connection: Connection, key: Key, answer: Answer) -> None:
    """Keep the answer of the request that holds the key."""
    await connection.execute(
        "UPDATE idempotency_keys SET status = %s, headers = %s, body = %s"
        " WHERE token_id = %s AND key = %s AND run = %s",
        [answer.status, Json(dict(answer.headers)), answer.body, key.token_id, key.key, key.run],
    )


async def release_key(connection: Connection, key: Key) -> None:
    """Forget a key whose request made nothing: the same request may be sent again."""
    await connection.execute(
        "DELETE FROM idempotency_keys WHERE token_id = %s AND key = %s AND run = %s", [key.token_id, key.key, key.run]
    )


async def forget_answers(connection: Connection) -> None:
    """Delete answers that are older than a day."""
    await connection.execute(
        "DELETE FROM idempotency_keys WHERE created_at < now() - make_interval(secs => %s)", [KEPT_SECONDS]
    )
