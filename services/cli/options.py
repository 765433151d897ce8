"""Options that several commands have, and spans of time as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated

import typer

YEAR_SECONDS = 31_536_000.0

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Wide = Annotated[bool, typer.Option("--wide", help="Cut nothing, whatever the terminal's width. So it is in a pipe.")]
Utc = Annotated[bool, typer.Option("--utc", help="Show times in UTC instead of this terminal's zone.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Grep = Annotated[str | None, typer.Option(help="Only those with this text, in upper or lower case.")]
OfFeed = Annotated[str | None, typer.Option("--feed", help="Only those of this feed: its id or URL.")]
OfTag = Annotated[str | None, typer.Option("--tag", help="Only feeds with this tag, in upper or lower case.")]

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def span(least: float = 0.0, *, or_zero: bool = False) -> Callable[[str], float]:
    """Return a parser of a time span (`90`, `90s`, `5m`, `2h`, `1d`); its seconds are from `least` to a year.

    With `or_zero` it may be 0, too.
    """

    def read(text: str | float) -> float:
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smhd]?)\s*", str(text).lower(), re.ASCII)
        seconds = float(found[1]) * _UNITS[found[2]] if found else math.nan
        if not (least <= seconds <= YEAR_SECONDS or (or_zero and seconds == 0)):
            raise typer.BadParameter(
                f"{str(text)[:50]!r}: expected {'0 or ' if or_zero else ''}{least:g} to {YEAR_SECONDS:,.0f} seconds,"
                " written as 90, 90s, 5m, 2h or 1d"
            )
        return seconds

    return read
