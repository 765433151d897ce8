"""One contender's work in one round (a lap), and the median of several."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


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

    @property
    def rate(self) -> float:
        """Things per second."""
        return self.count / self.seconds

    def cpu_ms(self, process: str) -> float:
        """CPU milliseconds of `process` per thing."""
        return 1000 * self.cpu[process] / self.count


def check_errors(lap: Lap) -> Lap:
    """Return the lap; raise BenchError if more than one fetch in fifty failed."""
    if lap.errors > lap.count / 50:
        raise BenchError(f"{lap.errors} of {lap.count} fetches failed")
    return lap


def middle_rate(laps: Sequence[Lap]) -> float:
    """Return the median rate."""
    return median(lap.rate for lap in laps)


def middle_cpu_ms(laps: Sequence[Lap], process: str) -> float:
    """Return the median CPU cost per thing, in milliseconds."""
    return median(lap.cpu_ms(process) for lap in laps)


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the difference, by process."""
    return {name: after[name] - before[name] for name in before}


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Yield 0, 1, … up to `most` times; stop earlier if another round would exceed `seconds`."""
    start = time.monotonic()
    for number in range(most):
        spent = time.monotonic() - start
        if number and spent + spent / number > seconds:
            return
        yield number
