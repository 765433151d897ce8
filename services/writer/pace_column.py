"""A feed's pace as it stands in the column `pace`: JSON, since it is one thing and its parts change together."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import TypeAdapter, ValidationError

from services.writer.pace import Pace

log = logging.getLogger(__name__)

_ADAPTER = TypeAdapter(Pace)


def read_pace(value: Any) -> Pace:
    """Return the pace in `value`. What can't be read is no reason to stop: the feed's past is learnt anew."""
    if not value:
        return Pace()
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError as error:
        log.warning("a pace that can't be read is begun anew: %s", error.errors(include_url=False)[0])
        return Pace()


def write_pace(pace: Pace) -> Any:
    """Return the pace as JSON holds it."""
    return _ADAPTER.dump_python(pace, mode="json")
