"""One request at a time to a host, over all commands that run, with the same spacing as in the fetchers.

Commands know nothing of each other, so an advisory lock of the database orders them. A command holds the lock until the
next request may start, so no row has to be kept and cleaned up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from services.admin.registry import Connection
from shared.errors import FeedmillError

LOCK_KEY = 0x_FEED_0003
"""The seed of the hash that is a group's lock."""


class LeftAlone(FeedmillError):
    """The host asked to be left alone (429 with Retry-After), and the time is not over."""


@contextmanager
def host_slot(
    connection: Connection,
    group: str,
    interval_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[], None]]:
    """Wait until no other command asks the hosts of `group`; yield what is to be called when the request leaves.

    The block ends no sooner than `interval_seconds` after that. `connection` must be idle: the lock belongs to a
    transaction of its own, which works behind a PgBouncer, too.

    Raises:
        LeftAlone: the group must not be asked now.
    """
    sent_at: list[float] = []
    with connection.transaction():
        connection.execute("SELECT set_config(name, '0', true) FROM unnest(%s::text[]) AS name", [_NO_LIMITS])
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [group, LOCK_KEY])
        statement = "SELECT until FROM throttled_groups WHERE politeness_group = %s AND until > clock_timestamp()"
        if row := connection.execute(statement, [group]).fetchone():
            raise LeftAlone(f"{group} asked to be left alone until {row['until']:%Y-%m-%d %H:%M:%S %Z}")
        try:
            yield lambda: sent_at.append(clock())
        finally:
            if sent_at:
                sleep(max(sent_at[-1] + interval_seconds - clock(), 0.0))


_NO_LIMITS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
