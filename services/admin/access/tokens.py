"""Tokens: who may use the API, and for what.

A token is `fm_<prefix>_<secret>`. Its secret has 256 random bits, so a plain SHA-256 of it tells nobody anything.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import errors

from services.admin.actor import Actor, Scope, audit
from services.admin.errors import Conflict, NotFound
from shared.database.postgres import Connection

TOKEN = re.compile(r"(fm_[0-9a-f]{8})_[0-9a-f]{64}", re.ASCII)

MOST_TOKENS = 1000
"""Tokens that are not revoked, at most: a program that makes one a minute is wrong."""

USE_SECONDS = 60
"""How exact `last_used_at` is."""


@dataclass(frozen=True)
class Grant:
    """What a good token allows."""

    token_id: int
    name: str
    """The token's name and prefix."""
    scopes: frozenset[Scope]
    seconds_left: float | None
    """Until it expires; None: never."""
    secret_hash: bytes


def new_token() -> str:
    """Return a new token."""
    return f"fm_{secrets.token_hex(4)}_{secrets.token_hex(32)}"


def secret_hash(secret: str) -> bytes:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).digest()


_ROW = """
    id, name, prefix, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
    CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= now() THEN 'expired' ELSE 'good' END AS state
"""

_INSERT = f"""
INSERT INTO api_tokens (name, prefix, secret_hash, scopes, created_by, expires_at)
VALUES (%s, %s, %s, %s, %s, now() + make_interval(secs => %s::float8)) RETURNING {_ROW}
"""  # noqa: S608 - our own text

_LIST = f"""
SELECT {_ROW} FROM api_tokens WHERE id > %s AND (%s::text IS NULL OR name = %s) ORDER BY id LIMIT %s
"""  # noqa: S608 - our own text

_READ = f"SELECT {_ROW} FROM api_tokens WHERE id = %s"  # noqa: S608 - our own text


async def create_token(
    connection: Connection, actor: Actor, *, name: str, scopes: Collection[Scope], lifetime_seconds: int | None
) -> dict[str, Any]:
    """Make a token; return its row, with the token itself as `token`.

    Args:
        connection: in a transaction.
        actor: who makes it.
        name: for people; no two tokens that are not revoked share one.
        scopes: what it may do.
        lifetime_seconds: None: it never expires.

    Raises:
        Conflict: the name is taken, or there are too many tokens.
    """
    cursor = await connection.execute("SELECT count(*) AS tokens FROM api_tokens WHERE revoked_at IS NULL")
    row = await cursor.fetchone()
    if row and row["tokens"] >= MOST_TOKENS:
        raise Conflict(f"there are {MOST_TOKENS} tokens already: revoke some (`feedmill token revoke`)")
    token = new_token()
    try:
        cursor = await connection.execute(
            _INSERT,
            [name, prefix_of(token), secret_hash(token), sorted(set(scopes)), actor.name, lifetime_seconds],
        )
    except errors.UniqueViolation:
        raise Conflict(f"there is a token named {name!r}: take another name, or revoke that one first") from None
    made = await cursor.fetchone()
    assert made is not None
    ends = made["expires_at"] and made["expires_at"].isoformat()
    details = {"name": name, "prefix": made["prefix"], "scopes": made["scopes"], "expires_at": ends}
    await audit(connection, actor, "token.create", made["id"], details)
    return {**made, "token": token}


def prefix_of(token: str) -> str:
    """Return the part by which people recognise a token."""
    return token.rpartition("_")[0]


async def list_tokens(
    connection: Connection, *, name: str | None, limit: int, after: int | None
) -> list[dict[str, Any]]:
    """Return tokens by id, also those that are revoked or have expired; their secrets are known to nobody."""
    cursor = await connection.execute(_LIST, [after or 0, name, name, limit])
    return await cursor.fetchall()


async def revoke_token(connection: Connection, actor: Actor, token_id: int) -> dict[str, Any]:
    """Revoke a token, and end its sessions; return its row. One that is revoked stays as it is.

    Raises:
        NotFound: there is none.
    """
    cursor = await connection.execute("SELECT revoked_at FROM api_tokens WHERE id = %s FOR UPDATE", [token_id])
    row = await cursor.fetchone()
    if row is None:
        raise NotFound(f"there is no token {token_id}: see `feedmill token list`")
    if row["revoked_at"] is None:
        await connection.execute("UPDATE api_tokens SET revoked_at = now() WHERE id = %s", [token_id])
        await connection.execute("DELETE FROM api_sessions WHERE token_id = %s", [token_id])
        await audit(connection, actor, "token.revoke", token_id)
    revoked = await read_token(connection, token_id)
    assert revoked is not None
    return revoked


async def read_token(connection: Connection, token_id: int) -> dict[str, Any] | None:
    """Return the row of a token; None: there is none."""
    cursor = await connection.execute(_READ, [token_id])
    return await cursor.fetchone()


async def find_grant(connection: Connection, hashed: bytes) -> Grant | None:
    """Return what the token with this `secret_hash` allows now; None: nothing."""
    cursor = await connection.execute(
        """
        SELECT id, name, prefix, scopes, secret_hash, extract(epoch FROM expires_at - now())::float8 AS seconds_left
        FROM api_tokens WHERE secret_hash = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
        """,
        [hashed],
    )
    row = await cursor.fetchone()
    return grant_of(row) if row else None


def grant_of(row: dict[str, Any]) -> Grant:
    """Return the grant in a row of `api_tokens` with `seconds_left`."""
    scopes = frozenset(map(Scope, row["scopes"]))
    return Grant(row["id"], f"{row['name']} {row['prefix']}", scopes, row["seconds_left"], row["secret_hash"])


async def note_uses(connection: Connection, token_ids: Iterable[int]) -> None:
    """Note that these tokens were used a moment ago."""
    await connection.execute(
        "UPDATE api_tokens SET last_used_at = now() WHERE id = ANY(%s)"
        " AND (last_used_at IS NULL OR last_used_at < now() - make_interval(secs => %s))",
        [sorted(token_ids), USE_SECONDS],
    )


async def forget_tokens(connection: Connection, days: float) -> None:
    """Delete tokens that ended so many days ago."""
    await connection.execute(
        "DELETE FROM api_tokens WHERE least(revoked_at, expires_at) < now() - make_interval(secs => %s)",
        [days * 86_400],
    )
