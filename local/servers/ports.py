"""Free TCP ports on the loopback address, for servers that keep theirs from run to run."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

from shared.errors import ConfigurationError

# Below Linux's ephemeral range (32768 up): otherwise an outgoing connection takes a server's port while the
# server is down for a moment, and it can't come back on it.
PORT_RANGE = range(20_000, 32_000)
ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # The servers set this option too: connections in TIME_WAIT don't stop them.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_ports(wanted: Sequence[int]) -> list[int]:
    """Return one free port for each wanted one: that one itself if it is free, else (and for 0) a random one.

    Raises ConfigurationError if the machine has no free port to give.
    """
    chosen: list[int] = []
    for port in wanted:
        keep = port != 0 and port not in chosen and is_free(port)
        chosen.append(port if keep else _random_port(chosen))
    return chosen


def _random_port(taken: Sequence[int]) -> int:
    draw = random.SystemRandom()  # not the seeded generator: tests seed it, and would all draw the same port
    for _ in range(ATTEMPTS):
        port = draw.choice(PORT_RANGE)
        if port not in taken and is_free(port):
            return port
    raise ConfigurationError(
        f"No free port on 127.0.0.1 between {PORT_RANGE.start} and {PORT_RANGE.stop - 1} after {ATTEMPTS} tries:"
        " see `ss -ltn` for what holds them"
    )
