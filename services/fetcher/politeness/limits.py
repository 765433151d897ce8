"""Pure: the limits of politeness, and the policies for single hosts (`FEEDMILL_HOST_POLICIES`)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

MAX_WAIT_SHARE = 0.8
"""A job is admitted if it is expected to start within this part of a hold. The rest is for errors of the estimate."""

_PORT = re.compile(r":\d+$")

_PATTERN = re.compile(r"[a-z0-9._:/*?\[\]-]+")

_EXPECTED = "expected `PATTERN concurrency=NUMBER interval=SECONDS`, several separated by semicolons"


@dataclass(frozen=True)
class HostPolicy:
    """Limits for the groups that match a pattern (`*.example.org`). None: the general limit."""

    pattern: str
    concurrency: int | None = None
    min_interval_seconds: float | None = None


@dataclass(frozen=True)
class Limits:
    """The limits of the scoreboard; spans in seconds."""

    host_concurrency: int = 2
    host_min_interval_seconds: float = 1.0
    max_active: int = 200
    max_held_per_group: int = 100
    max_hold_seconds: float = 20.0
    connect_failure_seconds: float = 600.0
    throttle_seconds: float = 30.0
    policies: tuple[HostPolicy, ...] = ()
    """The first one whose pattern matches the group, its host with the port, or its host is used."""

    def policy(self, name: str) -> HostPolicy:
        """Return the policy for a group, filled in with the general limits."""
        host_and_port = name.partition("/")[0]
        host = _PORT.sub("", host_and_port)
        for policy in self.policies:
            if any(fnmatchcase(text, policy.pattern) for text in (name, host_and_port, host)):
                break
        else:
            policy = HostPolicy(name)
        interval = policy.min_interval_seconds
        return HostPolicy(
            policy.pattern,
            policy.concurrency or self.host_concurrency,
            self.host_min_interval_seconds if interval is None else interval,
        )

    def interval_of(self, name: str) -> float:
        """Return the seconds between two requests to a group."""
        return self.policy(name).min_interval_seconds or 0.0


def parse_policies(text: str) -> tuple[HostPolicy, ...]:
    """Return the policies in their order: `*.slow.example concurrency=1 interval=10; feeds.example concurrency=8`.

    A pattern matches a host, with `*` and `?` as in a shell, and the port if it is not a default port.

    Raises:
        ValueError: says which part is wrong and what is expected.
    """
    return tuple(_parse_policy(part.strip()) for part in text.split(";") if part.strip())


def _parse_policy(text: str) -> HostPolicy:
    pattern, *words = text.split()
    if not _PATTERN.fullmatch(pattern.lower()):
        raise ValueError(f"{pattern!r} is no pattern for hosts; {_EXPECTED}")
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in {"concurrency", "interval"} or name in values:
            raise ValueError(f"{word!r} in the policy for {pattern} is unknown or there twice; {_EXPECTED}")
        values[name] = value
    if not values:
        raise ValueError(f"the policy for {pattern} says nothing; {_EXPECTED}")
    return HostPolicy(pattern.lower(), _concurrency(pattern, values), _interval(pattern, values))


def _concurrency(pattern: str, values: dict[str, str]) -> int | None:
    text = values.get("concurrency")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise ValueError(f"the concurrency for {pattern} must be a number from 1 to 10000")
    return int(text)


def _interval(pattern: str, values: dict[str, str]) -> float | None:
    text = values.get("interval")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86400:
        raise ValueError(f"the interval for {pattern} must be seconds from 0 to 86400")
    return seconds
