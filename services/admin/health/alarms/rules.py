"""Pure: the alarms that ring. docs/how-to/alerts.md says what to do about each."""

from __future__ import annotations

from itertools import chain

from services.admin.health.alarms.alarm import Alarm, Severity
from services.admin.health.alarms.servers import find_around
from services.admin.health.pipeline.picture import Picture
from services.admin.health.pipeline.rules import find_by_stage, find_in_quality
from services.admin.health.pipeline.status import Status


def find_alarms(at: Picture) -> list[Alarm]:
    """Return what is wrong with the pipeline, the worst first: of equals, the servers before the stages."""
    found = chain(*find_by_stage(at).values(), find_around(at), find_in_quality(at))
    alarms = [one.to_alarm() for one in found if one.status in {Status.DEGRADED, Status.DOWN}]
    return sorted(dict.fromkeys(alarms), key=lambda alarm: alarm.severity is not Severity.CRITICAL)
