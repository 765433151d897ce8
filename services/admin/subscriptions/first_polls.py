"""Pure: when the first polls of many new feeds are due, so that they come at a rate that the pipeline manages."""

from __future__ import annotations

from collections.abc import Callable

AT_ONCE = 100
"""So many feeds of an import are due at once."""

PER_SECOND = 25.0
"""The others become due at this rate. A first poll writes all entries of a feed: a small machine manages a hundred
such polls a second, and the feeds that are known already need most of that."""


class FirstPolls:
    """The waits of one import's new feeds.

    Args:
        interval_of: returns the least time between two requests to a politeness group, in seconds.
    """

    def __init__(self, interval_of: Callable[[str], float]) -> None:
        self._interval_of = interval_of
        self._count = 0
        self._free_at: dict[str, float] = {}
        self.longest_seconds = 0.0

    def next_wait(self, group: str) -> float:
        """Return how many seconds from now on the next new feed waits, whose politeness group is `group`.

        Feeds of one group are at least the group's interval apart.
        """
        wait = max((self._count - AT_ONCE) / PER_SECOND, self._free_at.get(group, 0.0))
        self._count += 1
        self._free_at[group] = wait + self._interval_of(group)
        self.longest_seconds = max(self.longest_seconds, wait)
        return wait
