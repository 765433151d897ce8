"""Logins of browsers. A session may do what its token may, for as long as the token is good."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from services.admin.access.tokens import Grant, grant_of, secret_hash
from services.admin.actor import Actor, audit
from shared.database.postgres import Connection

IDLE_SECONDS = 12 * 3600
"""A session that is not used for so long ends ..."""

LONGEST_SECONDS = 7 * 86_400
"""... and any ends so long after the login."""

SLIDE_SECONDS = 60
"""Its end is moved at most so often."""


def csrf_token(secret: str) -> str:
    """Return the token that a page of this session sends with each change.

    It follows from the session's secret, which no page can read, so neither the table nor its backup holds it.
    """
    return hmac.new(secret.encode(), b"feedmill csrf", hashlib.sha256).hexdigest()


async def begin_session(connection: Connection, actor: Actor) -> str:
    """Return the secret of a new session for the actor's token."""
    secret = secrets.token_hex(32)
    await connection.execute(
        "INSERT INTO api_sessions (secret_hash, token_id, expires_at)"
        " VALUES (%s, %s, now() + make_interval(secs => %s))",
        [secret_hash(secret), actor.token_id, IDLE_SECONDS],
    )
    await audit(connection, actor, "session.begin", actor.token_id)
    return secret


async def find_session(connection: Connection, hashed: bytes) -> Grant | None:
    """Return what the session with this `secret_hash` allows now; None: nothing."""
    cursor = await connection.execute(
        """
        SELECT token.id, token.name, token.prefix, token.scopes, session.secret_hash,
            extract(epoch FROM least(session.expires_at, token.expires_at) - now())::float8 AS seconds_left
        FROM api_sessions session JOIN api_tokens token ON token.id = session.token_id
        WHERE session.secret_hash = %s AND token.revoked_at IS NULL
            AND least(session.expires_at, token.expires_at) > now()
        """,
        [hashed],
    )
    row = await cursor.fetchone()
    return grant_of(row) if row else None


async def end_session(connection: Connection, actor: Actor, secret: str) -> None:
    """End a session of the actor, if there is one."""
    cursor = await connection.execute("DELETE FROM api_sessions WHERE secret_hash = %s", [secret_hash(secret)])
    if cursor.rowcount:
        await audit(connection, actor, "session.end", actor.token_id)


async def extend_sessions(connection: Connection, hashes: Iterable[bytes]) -> None:
    """Move the end of sessions that were used a moment ago."""
    await connection.execute(
        """
        UPDATE api_sessions SET expires_at = least(
            now() + make_interval(secs => %(idle)s), created_at + make_interval(secs => %(longest)s))
        WHERE secret_hash = ANY(%(hashes)s) AND expires_at > now()
            AND expires_at < now() + make_interval(secs => %(idle)s - %(slide)s)
        """,
        {"idle": IDLE_SECONDS, "longest": LONGEST_SECONDS, "slide": SLIDE_SECONDS, "hashes": sorted(hashes)},
    )


async def forget_sessions(connection: Connection) -> None:
    """Delete sessions that have ended."""
    await connection.execute("DELETE FROM api_sessions WHERE expires_at <= now()")
