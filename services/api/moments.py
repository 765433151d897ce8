"""Moments in queries."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

_DATE_AND_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:")


def _refuse_numbers(value: Any) -> Any:
    """Return the value if it may be ISO 8601: pydantic also takes numbers, as seconds or milliseconds since 1970."""
    if isinstance(value, str) and not _DATE_AND_TIME.match(value):
        raise PydanticCustomError("moment", "give a moment with its zone, such as 2026-11-22T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_refuse_numbers)]
"""By ISO 8601, with a zone."""
