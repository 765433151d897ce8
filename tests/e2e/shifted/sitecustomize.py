"""On the PYTHONPATH of a process: its clock is wrong, by what `SHIFTED_CLOCKS` says of its module, in hours.

`SHIFTED_CLOCKS="services.fetcher=2 services.writer=-3"`
"""

from __future__ import annotations

import datetime as clock
import os
import sys
import time

_TRUE = clock.datetime


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _TRUE)


def shift(hours: float) -> None:
    """Let this process's clock be so many hours ahead."""
    span, true_time = clock.timedelta(hours=hours), time.time

    class Shifted(_TRUE, metaclass=_Kind):
        @classmethod
        def now(cls, tz: clock.tzinfo | None = None) -> clock.datetime:  # type: ignore[override]
            return _TRUE.now(tz) + span

    clock.datetime = Shifted  # type: ignore[misc]
    time.time = lambda: true_time() + span.total_seconds()


for module, _, hours in (item.partition("=") for item in os.environ.get("SHIFTED_CLOCKS", "").split()):
    if module in sys.orig_argv:
        shift(float(hours))
