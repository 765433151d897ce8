"""One contender's work in one round (a lap), rounds of several contenders, and the rows of their medians."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.rows import Row


class BenchError(Exception):
    """The run is invalid: something was lost, failed or died. The message says what."""


@dataclass(frozen=True)
class Lap:
    """The number of things done, the seconds that they took, and the CPU seconds of each process."""

    count: int
    seconds: float
    cpu: Mapping[str, float] = field(default_factory=dict)
    errors: int = 0
    """Failed fetches among them. The farm never fails, so the client or its library did."""
    wal_bytes: int = 0
    """The growth of PostgreSQL's write-ahead log."""

    @property
    def rate(self) -> float:
        """Things per second."""
        return self.count / self.seconds

    def cpu_ms(self, process: str) -> float:
        """CPU milliseconds of `process` per thing."""
        return 1000 * self.cpu[process] / self.count


Contender = Callable[[], Awaitable[Lap]]


async def run_rounds(
    contenders: Mapping[str, Contender], most: int, seconds: float, *, warm_up: bool = False
) -> dict[str, list[Lap]]:
    """Let all contenders run in each of the `rounds`, another one first each time; return their laps.

    With `warm_up` there is one more round, the first one, which does not count: it reads the disk.
    """
    names = list(contenders)
    laps: dict[str, list[Lap]] = {name: [] for name in names}
    for number in rounds(most + warm_up, seconds):
        for name in rotated(names, number):
            lap = await contenders[name]()
            if number or not warm_up:
                laps[name].append(lap)
    return laps


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return the names in the order of this round: each begins in its turn."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Yield 0, 1, … up to `most` times; stop earlier if another round would exceed `seconds`."""
    start = time.monotonic()
    for number in range(most):
        spent = time.monotonic() - start
        if number and spent + spent / number > seconds:
            return
        yield number


def check_errors(lap: Lap) -> Lap:
    """Return the lap; raise BenchError if more than one fetch in fifty failed."""
    if lap.errors > lap.count / 50:
        raise BenchError(f"{lap.errors} of {lap.count} fetches failed")
    return lap


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the difference, by process."""
    return {name: after[name] - before[name] for name in before}


def middle_rate(laps: Sequence[Lap]) -> float:
    """Return the median rate."""
    return median(lap.rate for lap in laps)


def middle_ms(laps: Sequence[Lap]) -> float:
    """Return the median time of a lap, in milliseconds."""
    return 1000 * median(lap.seconds for lap in laps)


def middle_cpu_ms(laps: Sequence[Lap], process: str) -> float:
    """Return the median CPU cost per thing, in milliseconds."""
    return median(lap.cpu_ms(process) for lap in laps)


def rate_row(
    name: str, unit: str, beside: str, ours: Sequence[Lap], other: Sequence[Lap], goal: float | None = None
) -> Row:
    """Return the median rate of our laps beside that of the others."""
    return Row(name, middle_rate(ours), unit, beside, middle_rate(other), goal)


def error_row(subject: str, beside: str, ours: Iterable[Lap], other: Iterable[Lap]) -> Row:
    """Return the failed fetches of our laps beside those of the others."""
    failed, failed_beside = (sum(lap.errors for lap in laps) for laps in (ours, other))
    return Row(f"{subject}.transport_errors", failed, "fetches", beside, failed_beside)
