"""Places in lists of articles, as cursors."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from services.admin.articles.pending import Place
from services.api.paging import made_up, read_cursor, read_moment, write_cursor


def write_place(place: Place) -> str:
    """Return the cursor of a place in the list of pending articles."""
    held = place.claimed_until.isoformat() if place.claimed_until else ""
    return write_cursor(place.as_of.isoformat(), place.part, held, place.created_at.isoformat(), place.md5)


def read_place(cursor: str | None) -> Place | None:
    """Return the place of a cursor; None without one. Raises Invalid if it was made up."""
    key = read_cursor(cursor, [str, int, str, str, str])
    if key is None:
        return None
    as_of, part, claimed_until, created_at, md5 = key
    held = read_moment(claimed_until) if claimed_until else None
    return Place(read_moment(as_of), part, held, read_moment(created_at), md5)


def read_moment_place(cursor: str | None) -> tuple[datetime, str] | None:
    """Return a place in a list by moment and key; None without a cursor. Raises Invalid if it was made up."""
    key = read_cursor(cursor, [str, str])
    return (read_moment(key[0]), key[1]) if key else None


def read_entry_place(cursor: str | None) -> tuple[str, str] | None:
    """Return a place in the ledger of a feed; None without a cursor. Raises Invalid if it was made up."""
    key = read_cursor(cursor, [str, str])
    if key is None:
        return None
    try:
        return key[0] and str(UUID(key[0])), key[1]
    except ValueError as error:
        raise made_up() from error
