"""Pure: what a check found, and what a finding is worth."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    check: str
    """What was looked at, in a word or two."""
    severity: Severity
    found: str
    advice: str = ""
    """What to do; empty if all is well."""


def well(check: str, found: str) -> Finding:
    """Return a finding that nothing has to be done about."""
    return Finding(check, Severity.OK, found)


def warning(check: str, found: str, advice: str) -> Finding:
    """Return a finding that hurts, or may hurt later."""
    return Finding(check, Severity.WARNING, found, advice)


def error(check: str, found: str, advice: str) -> Finding:
    """Return a finding with which Feedmill does not work."""
    return Finding(check, Severity.ERROR, found, advice)


def worst_of(findings: Iterable[Finding]) -> Severity:
    """Return the worst severity."""
    order = list(Severity)
    return max((finding.severity for finding in findings), key=order.index, default=Severity.OK)


EXIT_CODES = {Severity.OK: 0, Severity.ERROR: 1, Severity.WARNING: 3}
"""2 is wrong usage."""

CLOCK_WARNING_SECONDS, CLOCK_ERROR_SECONDS = 2.0, 60.0


def judge_version(check: str, found: str, least: str) -> Finding:
    """Compare versions such as `3.10` and `15.6 (Debian)` by their numbers."""
    if _numbers(found) < _numbers(least):
        return error(check, f"version {found}", f"install version {least} or newer")
    return well(check, f"version {found}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.split(" ", maxsplit=1)[0])][:3]


def judge_schema(applied: int, needed: int) -> Finding:
    """Compare the schema of the database with the one that this code needs."""
    if applied < needed:
        return error("migrations", f"the schema is at {applied}, this code needs {needed}", "run `feedmill migrate`")
    if applied > needed:
        return warning(
            "migrations",
            f"the schema is at {applied}, newer than this code's {needed}",
            "bring the code of this machine up to date",
        )
    return well("migrations", f"the schema is at {applied}, as this code needs it")


def judge_clock(ahead_seconds: float) -> Finding:
    """Judge by how much this machine's clock is ahead of the database's (negative: behind)."""
    off = abs(ahead_seconds)
    said = f"{off:.1f} s {'ahead of' if ahead_seconds > 0 else 'behind'} the database's"
    if off <= CLOCK_WARNING_SECONDS:
        return well("clock", said)
    found = error if off > CLOCK_ERROR_SECONDS else warning
    return found("clock", said, "let NTP (systemd-timesyncd, chrony) set the clock of both machines")


def judge_disk(place: str, free_bytes: int, all_bytes: int) -> Finding:
    """Judge the room that is left on a disk."""
    said = f"{free_bytes / 2**30:.1f} of {all_bytes / 2**30:.1f} GiB are free at {place}"
    if free_bytes < 2**28:
        return error("disk", said, "free some space: RabbitMQ and PostgreSQL stop on a full disk")
    if free_bytes < 2**31:
        return warning("disk", said, "free some space, or move FEEDMILL_HOME to a larger disk")
    return well("disk", said)


def judge_open_files(limit: int, threads: int, jobs: int) -> Finding:
    """Compare the limit of open files with what a fetcher may have open: a socket per thread, and room for its jobs."""
    needed = threads + jobs + 100
    if limit < needed:
        return warning(
            "open files",
            f"the limit is {limit:,}, and a fetcher may need {needed:,}",
            f"raise it (`ulimit -n {needed}`, systemd: LimitNOFILE), or lower FEEDMILL_FETCH_THREADS",
        )
    return well("open files", f"the limit is {limit:,}")
