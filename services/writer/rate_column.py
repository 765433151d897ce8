"""A feed's pace as it stands in the column `pace`: JSON, since it is one thing and its parts change together."""

from __future__ import annotations

import logging
import math
from typing import Any

from pydantic import TypeAdapter, ValidationError

from services.writer.schedule.publication_rate import PublicationRate

log = logging.getLogger(__name__)

_ADAPTER = TypeAdapter(PublicationRate)


def read_rate(value: Any) -> PublicationRate:
    """Return the pace in `value`. What can't be read is no reason to stop: the feed's past is learnt anew."""
    if not value:
        return PublicationRate()
    try:
        pace = _ADAPTER.validate_python(value)
    except ValidationError as error:
        log.warning("a pace that can't be read is begun anew: %s", error.errors(include_url=False)[0])
        return PublicationRate()
    if not _is_sound(pace):
        log.warning("a pace that can't be true is begun anew: %s", pace)
        return PublicationRate()
    return pace


def _is_sound(pace: PublicationRate) -> bool:
    moments = [moment for moment in (pace.seen_at, pace.rhythm_since) if moment is not None]
    numbers = (pace.recent_items, pace.recent_days, pace.silent_days, pace.heat, pace.empty_polls, pace.window_items)
    return (
        all(moment.tzinfo is not None for moment in moments)
        and all(0 <= number < math.inf for number in numbers)
        and len(pace.rhythm) == len(PublicationRate().rhythm)
        and min(pace.rhythm) >= 0
    )
