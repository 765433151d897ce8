"""Pure: how many jobs this process takes from the queue. So that a backlog of one group neither storms nor blocks.

Jobs that find no room in their group's line (`NoRoom`) can be sent to fast-delay, to see what stands behind them in the
queue. That is worth it as long as work for others is found; if all that comes is more of the same, it is a storm: with
a thousand jobs of one host at one a second, each would go round fifty times. So requeues are paid for:

- a job that is found for an *idle* group (it can start at once) earns another look, a full window of requeues, unless
  it is the rest of a backlog; every start earns `START_EARNS`;
- what can't be paid for goes back to the queue, and the process takes no more until the lines have got shorter, then
  only as many as they can take: it is *narrow*. When it has earned `LOOK_EARNED` since, it is wide again and looks;
  when the line of a backlog runs dry, it was too narrow and takes twice as many.

Hence over a long backlog of one group there is at most one requeue in ten jobs and its line is never empty, while idle
groups behind it are found.
"""

from __future__ import annotations

from dataclasses import dataclass

START_EARNS = 0.03
FIRST_BUDGET = 50.0
LOOK_EARNED = 25.0


@dataclass(frozen=True)
class _Pause:
    """Take nothing until only so many are held, and the moment has come; then as many as `window`."""

    held: int
    until: float
    window: int


class Intake:
    """See the module. One thread uses it; times are monotonic seconds.

    Args:
        most: the full window: jobs that may be in hand, held and active together. Also the most requeues that can be
            saved up.
        threads: jobs that can be under way at a time.
        step_seconds: how long a window stands that was cut for want of threads, before it is doubled.
    """

    def __init__(self, most: int, threads: int, step_seconds: float = 20.0) -> None:
        self._most = most
        self._threads = threads
        self._step_seconds = step_seconds
        self._cut_at = 0.0
        self._window = most
        self._pause: _Pause | None = None
        self._budget = FIRST_BUDGET - most  # that the very first job finds its group idle is no news
        self._earned = 0.0
        self._is_starved = False

    @property
    def window(self) -> int:
        """How many jobs may be taken at present: 0 during a pause."""
        return 0 if self._pause else self._window

    def note_find(self, *, news: bool) -> None:
        """A job was taken for a group that stood idle. `news`: not for want of room in its line before."""
        if news:
            self._earn(self._most)
        elif self._pause is None and not self._is_starved:
            self._window = min(2 * self._window, self._most)

    def note_start(self) -> None:
        """A job began."""
        self._earn(START_EARNS)

    def pay(self, excess: int) -> int:
        """Return how many of so many jobs without room may be requeued. The rest is to be given back: `narrow`."""
        paid = min(excess, max(int(self._budget), 0))
        self._budget -= paid
        return paid

    def narrow(
        self, now: float, *, held: int, active: int, room_in_seconds: float = 0.0, starved: bool = False
    ) -> None:
        """Take no more until the lines have room again; `held` and `active` are those that stay in hand.

        Opens again at a quarter of the line with a window of half of it, so that both together fit. `starved`: it was
        threads that were missing, so that there is nothing to look for: it becomes wide again step by step.
        """
        self._is_starved = starved
        self._cut_at = now
        least = self._threads if starved else 1
        window = min(max(active + held // 2, least), self._most)
        self._pause = _Pause(held // 4, now + room_in_seconds, window)
        self._earned = 0.0

    def tick(self, now: float, *, held: int, idle: bool) -> float | None:
        """Open again if it is time; return after how many seconds to ask again (None: when something has happened).

        `idle`: threads are free, so that more jobs would have a use.
        """
        pause = self._pause
        if pause is not None:
            if held > pause.held:
                return None
            if now < pause.until:
                return pause.until - now
            self._pause, self._window = None, pause.window
        if self._is_starved:
            if idle and now - self._cut_at >= self._step_seconds:
                self._cut_at = now
                self._window = min(2 * self._window, self._most)
                self._is_starved = self._window < self._most
        elif idle and self._earned >= LOOK_EARNED:
            self._window = self._most
            self._earned = 0.0
        return None

    def _earn(self, requeues: float) -> None:
        self._budget = min(self._budget + requeues, float(self._most))
        self._earned += requeues
