"""Room for large bodies: a process full of fetches holds at most so many of them at a time."""

from __future__ import annotations

import threading


class LargeBodies:
    """A number of permits. Whoever is to hold a large body has one until that body is done with."""

    def __init__(self, permits: int, wait_seconds: float) -> None:
        self._free = threading.Semaphore(permits)
        self._wait_seconds = wait_seconds

    def acquire(self) -> Permit:
        """Return a permit, when there is one.

        Raises:
            TimeoutError: none became free in time.
        """
        if not self._free.acquire(timeout=self._wait_seconds):
            raise TimeoutError(f"there was no room for a large body for {self._wait_seconds:g} s")
        return Permit(self._free)


class Permit:
    """One permit. It goes back once, at the latest when nobody refers to it any more."""

    def __init__(self, free: threading.Semaphore) -> None:
        self._free: threading.Semaphore | None = free

    def release(self) -> None:
        """Give it back; again is nothing."""
        free, self._free = self._free, None
        if free is not None:
            free.release()

    def __del__(self) -> None:
        self.release()
