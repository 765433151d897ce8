"""Pure: how many jobs this process takes from the broker, and how many of them it may requeue.

A job without room in its host's queue can go to the fast-delay queue, so that jobs of other hosts behind it arrive.
Without a limit this is a storm: of a thousand jobs of one host, each would go round fifty times. So requeues are paid:

1. A job of an idle new host earns a full window of requeues, a start earns `EARNED_BY_START`. Each requeue costs one.
   At most a full window is saved.
2. A job that nothing pays for is nacked, and the window shrinks. The process takes no jobs until a quarter of the held
   jobs is left and there is room. From then on it has at most as many in hand as were active, plus half of the held.
3. The window is full again when `FULL_WINDOW_COST` has been earned since then and a thread is free. If a host's
   backlog runs dry before, the window was too small and doubles.
4. If a hold ends because all threads are busy, the window shrinks too. Instead of rule 3 it doubles every
   `step_seconds` while a thread is free.

So a long backlog of one host costs at most one requeue in ten jobs, and idle hosts behind it are found.
"""

from __future__ import annotations

from dataclasses import dataclass

EARNED_BY_START = 0.03
FIRST_BUDGET = 50.0
FULL_WINDOW_COST = 25.0


@dataclass(frozen=True)
class _Pause:
    """The process takes no jobs until at most `held` are held and the time `until` has come; then up to `window`."""

    held: int
    until: float
    window: int


class Intake:
    """Decides how many jobs may be in hand. One thread uses it; times are monotonic seconds.

    Args:
        most: the full window: the most jobs that may be in hand, held and active together.
        threads: jobs that can be active at a time.
        step_seconds: how long a window that shrank for want of threads stays before it doubles.
    """

    def __init__(self, most: int, threads: int, step_seconds: float = 20.0) -> None:
        self._most = most
        self._threads = threads
        self._step_seconds = step_seconds
        self._changed_at = 0.0
        self._window = most
        self._pause: _Pause | None = None
        self._budget = FIRST_BUDGET - most  # the very first host is always new and earns `most`
        self._earned = 0.0
        self._lacks_threads = False

    @property
    def window(self) -> int:
        """How many jobs may be in hand at present: 0 during a pause."""
        return 0 if self._pause else self._window

    def note_idle_host(self, *, is_new: bool) -> None:
        """Count a job that can start at once. `is_new`: its host had no jobs for a while."""
        if is_new:
            self._earn(self._most)
        elif self._pause is None and not self._lacks_threads:
            self._window = min(2 * self._window, self._most)

    def note_start(self) -> None:
        """Count a start."""
        self._earn(EARNED_BY_START)

    def pay(self, wanted: int) -> int:
        """Return how many of the `wanted` requeues are paid for. The caller nacks the other jobs and calls `shrink`."""
        paid = min(wanted, max(int(self._budget), 0))
        self._budget -= paid
        return paid

    def shrink(
        self, now: float, *, held: int, active: int, room_in_seconds: float = 0.0, lacks_threads: bool = False
    ) -> None:
        """Shrink the window.

        Args:
            now: the current time.
            held: held jobs that stay in hand.
            active: active jobs.
            room_in_seconds: when there is room again.
            lacks_threads: there was room, but no thread.
        """
        self._lacks_threads = lacks_threads
        self._changed_at = now
        least = self._threads if lacks_threads else 1
        window = min(max(active + held // 2, least), self._most)
        self._pause = _Pause(held // 4, now + room_in_seconds, window)
        self._earned = 0.0

    def tick(self, now: float, *, held: int, idle: bool) -> float | None:
        """End the pause or enlarge the window if it is time. `idle`: a thread is free.

        Returns:
            After how many seconds to call again; None: after the next event.
        """
        pause = self._pause
        if pause is not None:
            if held > pause.held:
                return None
            if now < pause.until:
                return pause.until - now
            self._pause, self._window = None, pause.window
        if self._lacks_threads:
            if idle and now - self._changed_at >= self._step_seconds:
                self._changed_at = now
                self._window = min(2 * self._window, self._most)
                self._lacks_threads = self._window < self._most
        elif idle and self._earned >= FULL_WINDOW_COST:
            self._window = self._most
            self._earned = 0.0
        return None

    def _earn(self, requeues: float) -> None:
        self._budget = min(self._budget + requeues, float(self._most))
        self._earned += requeues
