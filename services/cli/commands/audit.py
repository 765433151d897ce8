"""The command `feedmill audit`: who changed what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Utc, Wide, span
from services.cli.output import Column, Times, print_table
from shared.observability.display import ascii_json


def audit(
    actor: Annotated[str | None, typer.Option(help="Only what they did: the whole name.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this, such as feed.update.")] = None,
    target: Annotated[str | None, typer.Option(help="Only what was done to this id.")] = None,
    since: Annotated[
        float | None, typer.Option(parser=span(), metavar="SPAN", help="Only of the last 2h, 7d, …")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List who changed what, the latest first."""
    from services.api.models.access import AuditRow

    begin = None if since is None else (datetime.now(UTC) - timedelta(seconds=since)).isoformat()
    with open_api() as api:
        found = api.rows("/api/audit", AuditRow, limit=limit, actor=actor, action=action, target=target, since=begin)
        rows = [row.model_dump() for row in found]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("at", lambda row: times(row["at"])),
        Column("who", "actor", flexible=True),
        Column("from", "address"),
        Column("did", "action"),
        Column("to", "target", flexible=True),
        Column("details", lambda row: ascii_json(row["details"]) if row["details"] else None, flexible=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} changes; {times.note}")
