"""Which alarms ring, for Prometheus."""

from __future__ import annotations

from prometheus_client import Gauge

from services.admin.health.alarms.advice import ADVICE
from services.admin.health.alarms.rules import find_alarms
from services.api.resources import Resources

LOOK_SECONDS = 30.0

ALARM = Gauge("feedmill_alarm", "1 while this alarm of `feedmill status` rings.", ["alarm"])


class Ringing:
    """Sets the metric."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def look(self) -> None:
        """Look once, within seconds whatever hangs."""
        ringing = {alarm.name for alarm in find_alarms(await self._resources.health.look())}
        for name in ADVICE:
            ALARM.labels(name).set(name in ringing)
