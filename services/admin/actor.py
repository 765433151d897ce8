"""Who does something, and the audit row that says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shared.observability.secrets import mask_within

if TYPE_CHECKING:  # commands that import `Scope` should start at once
    from shared.database.postgres import Connection


class Scope(StrEnum):
    """What a token may do. `write` includes `read`; `admin` includes all."""

    READ = "read"
    WRITE = "write"
    CONSUME = "consume"
    ADMIN = "admin"


_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.WRITE: frozenset({Scope.READ, Scope.WRITE}),
    Scope.CONSUME: frozenset({Scope.CONSUME}),
    Scope.ADMIN: frozenset(Scope),
}


@dataclass(frozen=True)
class Actor:
    """Who asks."""

    name: str
    """As it stands in the audit log: a token's name and prefix, or `command` with the machine's user."""
    scopes: frozenset[Scope]
    token_id: int = 0
    """0: the command line, or anybody where the API is open."""
    address: str | None = None
    """Where the request came from."""

    def may(self, scope: Scope) -> bool:
        """Return whether one of the scopes includes `scope`."""
        return any(scope in _INCLUDED[own] for own in self.scopes)


async def audit(
    connection: Connection, actor: Actor, action: str, target: object = None, details: Mapping[str, Any] | None = None
) -> None:
    """Write who did what, in the transaction that does it.

    Args:
        connection: in that transaction.
        actor: who.
        action: a noun and a verb, such as `feed.create`.
        target: the id of what it was done to.
        details: what was changed; credentials are masked.
    """
    await connection.execute(
        "INSERT INTO audit_log (actor, token_id, address, action, target, details) VALUES (%s, %s, %s, %s, %s, %s)",
        [
            actor.name,
            actor.token_id or None,
            actor.address,
            action,
            None if target is None else str(target),
            json.dumps(mask_within(dict(details or {}))),
        ],
    )
