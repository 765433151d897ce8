"""What a process is, for whoever watches it: which service, which version, and how much memory it may take."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from prometheus_client import Gauge

PROJECT_URL = "https://github.com/feedmill/feedmill"
"""The project's page: where whoever is polled finds out what Feedmill is, unless its operator names a page."""

BUILD = Gauge(
    "feedmill_build_info",
    "Always 1: a process of this component (scheduler, fetcher, writer) and version.",
    ["component", "version"],
)
MEMORY_LIMIT = Gauge(
    "feedmill_memory_limit_bytes", "Memory that the process's control group may take, in bytes; 0: no limit is known."
)

LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container sees its own limit: control groups of version 2, and of version 1."""

UNLIMITED = 1 << 50
"""Version 1 says "no limit" by a number close to 2**63."""


def announce(component: str) -> None:
    """Set the metrics that say what this process is."""
    BUILD.labels(component, read_version()).set(1)
    MEMORY_LIMIT.set(read_memory_limit())


def read_version() -> str:
    """Return the version that is installed, or "unknown" for code that runs without being installed."""
    try:
        return version("feedmill")
    except PackageNotFoundError:
        return "unknown"


def read_memory_limit(files: Sequence[Path] = LIMIT_FILES) -> int:
    """Return the limit in bytes, 0 if there is none or nobody says."""
    for file in files:
        try:
            limit = int(file.read_text(encoding="ascii"))
        except (OSError, ValueError):  # not there, or the word "max"
            continue
        return limit if limit < UNLIMITED else 0
    return 0
