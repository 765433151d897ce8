"""Only one of all running commands sends a request to a host at a time, with the same spacing as in the fetchers.

Commands know nothing of each other, so an advisory lock of the database orders them. A command holds the lock until the
next request may start. Thus no table has to store the time of the last request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from psycopg import errors

from services.admin.registry import Connection
from shared.errors import FeedmillError, Unavailable

LOCK_KEY = 0x_FEED_0003
"""The seed of the hash that is a group's lock."""

_NO_LIMITS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
"""A search may wait for its slot, and sleep in it, for longer than these allow."""

Sent = Callable[[], None]
"""To be called when the request leaves."""


class LeftAlone(FeedmillError):
    """The host asked for a pause (429 with Retry-After) that is not over yet."""


class HostBusy(Unavailable):
    """Others send requests to the host, and it was not our turn in time."""

    def __init__(self, group: str) -> None:
        super().__init__(
            f"{group}: others are asking this host just now, one after the other; try again in a minute, or add the"
            " feed's own URL without a check (`--no-check`)"
        )


Slot = Callable[[str, float], AbstractContextManager[Sent]]
"""Waits until a request to a group may start, whose requests are so many seconds apart."""


def patient_slot(connection: Connection, most_seconds: float, wait_seconds: Callable[[], float]) -> Slot:
    """Return the slots of a command that waits so long for others; hosts slower than `most_seconds` are left alone."""

    @contextmanager
    def slot(group: str, seconds: float) -> Iterator[Sent]:
        if seconds > most_seconds:
            raise LeftAlone(f"requests to {group} are {seconds:g} s apart (FEEDMILL_HOST_POLICIES)")
        with host_slot(connection, group, seconds, wait_seconds=wait_seconds()) as sent:
            yield sent

    return slot


@contextmanager
def host_slot(
    connection: Connection, group: str, interval_seconds: float, *, wait_seconds: float | None = None
) -> Iterator[Sent]:
    """Wait until nobody else searches at `group`; yield a function to call when the request leaves.

    The block ends at least `interval_seconds` after that call. `connection` must be idle, because the lock belongs to a
    transaction of its own. Such a lock also works behind a PgBouncer.

    Args:
        connection: for the lock.
        group: the politeness group.
        interval_seconds: the least time between two requests.
        wait_seconds: the longest wait for others; None: for ever.

    Raises:
        LeftAlone: the group must get no request now.
        HostBusy: others were faster.
    """
    sent_at: list[float] = []
    with connection.transaction():
        connection.execute("SELECT set_config(name, '0', true) FROM unnest(%s::text[]) AS name", [_NO_LIMITS])
        if wait_seconds is not None:
            limit = f"{max(wait_seconds * 1000, 1):.0f}"
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [limit])
        try:
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [group, LOCK_KEY])
        except errors.LockNotAvailable:
            raise HostBusy(group) from None
        statement = "SELECT until FROM throttled_groups WHERE politeness_group = %s AND until > clock_timestamp()"
        if row := connection.execute(statement, [group]).fetchone():
            raise LeftAlone(f"{group} asked to be left alone until {row['until']:%Y-%m-%d %H:%M:%S %Z}")
        try:
            yield lambda: sent_at.append(time.monotonic())
        finally:
            if sent_at:
                time.sleep(max(sent_at[-1] + interval_seconds - time.monotonic(), 0.0))
