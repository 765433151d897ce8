"""Ids as people give them: whole, or by their beginning."""

from __future__ import annotations

from collections.abc import Sequence

from services.admin.errors import Conflict

KEY_CHARACTERS = 32
"""Of an article's md5."""

PREFIX_CHARACTERS = 4
"""The fewest characters of an id's beginning: a typing error must not select an article."""


def the_one(prefix: str, found: Sequence[str]) -> str | None:
    """Return the only one of the ids that were found for a prefix; None if there is none.

    Raises:
        Conflict: there are several.
    """
    if len(found) > 1:
        names = ", ".join(found[:2])
        raise Conflict(f"{prefix!r} is ambiguous, give more of it: it begins {names}{', …' * (len(found) > 2)}")
    return found[0] if found else None
