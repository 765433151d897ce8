"""Pure: reads `FEEDMILL_HOST_POLICIES`: `*.slow.example concurrency=1 interval=10; feeds.example concurrency=8`."""

from __future__ import annotations

import math
import re

from services.fetcher.politeness.group import HostPolicy

_PATTERN = re.compile(r"[a-z0-9._:/*?\[\]-]+")

_EXPECTED = "expected `PATTERN concurrency=NUMBER interval=SECONDS`, several separated by semicolons"


def parse_policies(text: str) -> tuple[HostPolicy, ...]:
    """Return the policies in the order in which they are tried.

    A pattern stands for the host, with `*` and `?` as in a shell, and its port where it has one of its own.

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
