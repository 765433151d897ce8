"""How often a client may fail to name itself: a token bucket per address, bounded in memory."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

BURST = 20
"""Failures at once ..."""

SECONDS_EACH = 5.0
"""... and one more each so many seconds."""

LOOK_SECONDS = 1.0
"""So often an address that may not fail may show something new all the same, which may be good."""

MOST_ADDRESSES = 4096
"""The addresses that failed last are remembered."""


class Failures:
    """Counts failures by address; an IPv6 network of 64 bits is one address, since one machine has all of it.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When each address may fail BURST times at once again; those that failed last at the end."""
        self._look_at: OrderedDict[str, float] = OrderedDict()
        """From when each address that may not fail may show something new."""

    def wait_seconds(self, address: str | None) -> float:
        """Return for how long this address may not fail again; 0: it may now."""
        full_at = self._full_at.get(_network(address), 0.0)
        return max(full_at - self._clock() - (BURST - 1) * SECONDS_EACH, 0.0)

    def note(self, address: str | None) -> None:
        """Count a failure."""
        network = _network(address)
        self._full_at[network] = max(self._full_at.pop(network, 0.0), self._clock()) + SECONDS_EACH
        if len(self._full_at) > MOST_ADDRESSES:
            self._full_at.popitem(last=False)

    def try_look(self, address: str | None) -> float:
        """Return 0 and count it, if an address that may not fail may show something new; else the seconds until."""
        network, now = _network(address), self._clock()
        wait = self._look_at.get(network, 0.0) - now
        if wait > 0:
            return wait
        self._look_at.pop(network, None)
        self._look_at[network] = now + LOOK_SECONDS
        if len(self._look_at) > MOST_ADDRESSES:
            self._look_at.popitem(last=False)
        return 0.0

    def __len__(self) -> int:
        return len(self._full_at)


def _network(address: str | None) -> str:
    try:
        ip = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)
