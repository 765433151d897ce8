"""The command `feedmill hosts`: who is throttled, who is down, who has a backlog."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from services.admin.health.diagnosis import HostState
from services.admin.health.freshness_words import in_words
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Grep, Utc, Wide
from services.cli.output import Column, Times, print_facts, print_table
from shared.observability.display import ascii_json

Name = Annotated[str | None, typer.Argument(help="A host, as the list shows it; without one, all are listed.")]
InState = Annotated[HostState | None, typer.Option(help="Only hosts in this state.")]


def hosts(
    host: Name = None,
    state: InState = None,
    grep: Grep = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List hosts, or show one: its feeds, what waits for it, and until when it is left alone."""
    times = Times(utc=utc, wide=wide)
    if host is not None:
        _show(host, times, as_json=as_json)
        return
    from services.api.models.hosts import HostRow

    with open_api() as api:
        found = list(api.rows("/api/hosts", HostRow, limit=limit, q=grep, state=state))
    if as_json:
        print(ascii_json([row.model_dump(mode="json") for row in found]))
        return
    rows = [row.model_dump() for row in found]
    columns = (
        Column("host", flexible=True),
        Column("feeds", right=True),
        Column("due", right=True),
        Column("in flight", "in_flight", right=True),
        Column("failing", right=True),
        Column("throttled until", lambda row: times(row["throttled_until"])),
        Column("down until", lambda row: times(row["down_until"])),
        Column("last success", lambda row: times(row["last_success_at"])),
        Column("seconds", lambda row: _seconds(row["mean_seconds"]), right=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} hosts; {times.note}")


def _show(host: str, times: Times, *, as_json: bool) -> None:
    from services.api.models.hosts import Host

    with open_api() as api:
        row = api.get(f"/api/hosts/{quote(host, safe='')}", Host)
    if as_json:
        print(ascii_json(row.model_dump(mode="json")))
        return
    print_facts(
        [
            ("host", row.host),
            ("feeds", f"{row.feeds:,}"),
            ("  disabled", f"{row.disabled:,}"),
            ("  failing", f"{row.failing:,}"),
            ("  due", f"{row.due:,}"),
            ("  in flight, no result yet", f"{row.in_flight:,}"),
            ("throttled until", times.with_zone(row.throttled_until) or "no"),
            ("down until", times.with_zone(row.down_until) or "no"),
            ("last success", times.with_zone(row.last_success_at) or "never"),
            ("a fetch takes, in seconds", _seconds(row.mean_seconds) or "–"),
            ("freshness, last week", (row.freshness and in_words(row.freshness.week)) or "–"),
        ]
    )


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"
