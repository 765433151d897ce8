"""What stands in paths."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.convertors import StringConvertor, register_url_convertor


class _Digits(StringConvertor):
    """Digits, as a text: Starlette's `int` fails at thousands of them, and pydantic says what is wrong."""

    regex = "[0-9]+"


register_url_convertor("digits", _Digits())  # `/api/feeds/{feed:digits}` leaves `/api/feeds/import` to its own route

MOST_ID = 2**63 - 1

FeedId = Annotated[int, Path(ge=1, le=MOST_ID, description="The feed's id.")]
