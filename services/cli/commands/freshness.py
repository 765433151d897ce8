"""The command `feedmill freshness`: how long articles take from their publication to their row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.admin.health.freshness_words import span
from services.cli.calls.feeds import find_feed
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, OfFeed
from services.cli.output import Column, print_table
from shared.observability.display import ascii_json

if TYPE_CHECKING:
    from services.api.models.freshness import Freshness

OfHost = Annotated[str | None, typer.Option("--host", help="Only articles of this host (politeness group).")]

NOTE = (
    "times are never too short, and at most a tenth too long; at most: an article without a sure date counts with all"
    " the time since the poll before it"
)


def freshness(feed: OfFeed = None, host: OfHost = None, as_json: AsJson = False) -> None:
    """Show how long articles take from their publication to their row: of all feeds, of one, or of a host."""
    from services.api.models.freshness import Freshness

    if feed is not None and host is not None:
        raise typer.BadParameter("give --feed or --host, not both", param_hint="--host")
    with open_api() as api:
        of = {"feed": None if feed is None else find_feed(api, feed), "host": host}
        found = api.get("/api/freshness", Freshness, **of)
    if as_json:
        print(ascii_json(found.model_dump(mode="json")))
    else:
        show(found)


def show(found: Freshness) -> None:
    """Print a row for each span."""
    columns = (
        Column("last", lambda row: row[0]),
        Column("articles", lambda row: f"{row[1].sure + row[1].unsure:,}", right=True),
        Column("sure dates", lambda row: _percent(row[1].share_sure), right=True),
        *(Column(f"{p} % within", _of("seconds", p), right=True) for p in (50, 95, 99)),
        *(Column(f"{p} % at most", _of("at_most", p), right=True) for p in (50, 95, 99)),
        Column("left out", lambda row: f"{sum(row[1].left_out.values()):,}", right=True),
    )
    print_table(columns, [("hour", found.hour), ("day", found.day), ("week", found.week)], note=NOTE)


def _of(name: str, percent: int) -> Any:
    def text(row: Any) -> str | None:
        spans = getattr(row[1], name)
        return spans and span(getattr(spans, f"p{percent}"))

    return text


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"
