"""A private server's names, passwords and ports, kept in one file from run to run."""

from __future__ import annotations

import os
import random
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import ConfigurationError

FILE_NAME = "identity.json"

FIRST_STARTS = 3
"""So often a first start is tried, each time on other ports."""

# Below Linux's ephemeral range (32768 up): otherwise an outgoing connection takes a server's port while the
# server is down for a moment, and it can't come back on it.
PORT_RANGE = range(20_000, 32_000)
ATTEMPTS = 200


def _secret() -> str:
    return secrets.token_hex(16)


class Identity(BaseModel):
    """The fields of both servers; a port is 0 until it is chosen for the first time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user: str = "feedmill"
    password: str = Field(default_factory=_secret, repr=False)

    @classmethod
    def take(cls, directory: Path) -> Self:
        """Return the directory's identity, a new one if it has none, with ports that are free now; save it.

        Raises ConfigurationError if the file can't be read or no port is free.
        """
        path = directory / FILE_NAME
        try:
            found = cls.model_validate_json(path.read_bytes()) if path.exists() else cls()
        except (ValidationError, PermissionError) as error:
            raise ConfigurationError(
                f"{path} can't be read ({type(error).__name__}): run as the user who owns it, or delete"
                f" {directory.parent} to start anew, without the data"
            ) from error
        ports = found.ports()
        identity = found.model_copy(update=dict(zip(ports, choose_ports([*ports.values()]), strict=True)))
        write_private(path, identity.model_dump_json(indent=2) + "\n")
        return identity

    def ports(self) -> dict[str, int]:
        """Return the ports by the names of their fields."""
        return {name: getattr(self, name) for name in type(self).model_fields if name.endswith("port")}


class RabbitMQIdentity(Identity):
    """The broker's node."""

    node: str = Field(default_factory=lambda: f"feedmill-{secrets.token_hex(4)}@localhost")
    cookie: str = Field(default_factory=_secret, repr=False)
    amqp_port: int = 0
    management_port: int = 0
    prometheus_port: int = 0
    distribution_port: int = 0
    epmd_port: int = 0


class PostgresIdentity(Identity):
    """The database's cluster."""

    port: int = 0


def start_on_free_ports(take: Callable[[], Identity], start: Callable[[], None]) -> None:
    """Start a server for the first time, once more if somebody else took one of its ports before it could listen.

    Args:
        take: chooses ports (`Identity.take`).
        start: raises ConfigurationError if the server can't be started, and leaves no process then.
    """
    for left in reversed(range(FIRST_STARTS)):
        identity = take()
        try:
            start()
        except ConfigurationError:
            if not left or all(map(is_free, identity.ports().values())):
                raise
        else:
            return


def write_private(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1 now."""
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
