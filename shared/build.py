"""Metrics that say what a process is: its service, its version and its memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from prometheus_client import Gauge

PROJECT_URL = "https://github.com/feedmill/feedmill"
"""The project's page. The User-Agent names it unless the operator sets FEEDMILL_CONTACT_URL."""

BUILD = Gauge(
    "feedmill_build_info",
    "Always 1: a process of this component (scheduler, fetcher, enricher, writer, api) and version.",
    ["component", "version"],
)
MEMORY_LIMIT = Gauge(
    "feedmill_memory_limit_bytes", "Memory limit of the process's control group, in bytes; 0: no limit is known."
)

LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container reads its own limit: control groups version 2, then version 1."""

UNLIMITED = 1 << 50
"""Version 1 writes "no limit" as a number close to 2**63."""


def announce(component: str) -> None:
    """Set the metrics that say what this process is."""
    BUILD.labels(component, read_version()).set(1)
    MEMORY_LIMIT.set(read_memory_limit())


def read_version() -> str:
    """Return the installed version; "unknown" if the code runs without being installed."""
    try:
        return version("feedmill")
    except PackageNotFoundError:
        return "unknown"


def read_memory_limit(files: Sequence[Path] = LIMIT_FILES) -> int:
    """Return the limit in bytes; 0 if there is none or none is known."""
    for file in files:
        try:
            limit = int(file.read_text(encoding="ascii"))
        except (OSError, ValueError):  # not there, or the word "max"
            continue
        return limit if limit < UNLIMITED else 0
    return 0
