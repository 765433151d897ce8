"""The command `feedmill feeds check`: fetches feeds once and says how they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from services.cli.calls.opening import open_api
from services.cli.options import AsJson, OfTag, Utc
from services.cli.output import Times, console
from shared.errors import Unavailable
from shared.observability.display import ascii_json, safe_to_show

OfSourceType = Annotated[str | None, typer.Option("--source-type", help="Only feeds of this source type.")]


def check(
    feeds: Annotated[list[str] | None, typer.Argument(help="Ids or URLs of feeds. By default all.")] = None,
    tag: OfTag = None,
    source_type: OfSourceType = None,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """Fetch feeds once, read them as the pipeline would, and say how they are. Nothing is written.

    Exit code 1 if one is not well.
    """
    body = {"feeds": feeds or None, "tag": tag, "source_type": source_type}
    times, total, unwell = Times(utc=utc, wide=True), 0, 0
    with open_api() as api:
        for row in _in_order(api.lines("POST", "/api/feeds/check", json=body)):
            print(("," if total else "[") + ascii_json(row)) if as_json else _show(row, times)
            total, unwell = total + 1, unwell + (not row["well"])
    if as_json:
        print("]" if total else "[]")
    else:
        console.print(f"{total:,} feeds checked, {unwell:,} not well")
    if unwell:
        raise typer.Exit(1)


def _in_order(lines: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for line in lines:
        if "feed_id" not in line:
            raise Unavailable(str(line["error"]["detail"]))
        yield line


def _show(row: dict[str, Any], times: Times) -> None:
    sentence = _well(row, times) if row["well"] else _unwell(row)
    name = safe_to_show(row["name"] or row["url"], 100)
    console.print(f"feed {row['feed_id']} ({name}): {sentence}", soft_wrap=True, highlight=False)
    for note in _notes(row):
        console.print(f"  {safe_to_show(note)}", soft_wrap=True, highlight=False, style="yellow")


def _well(row: dict[str, Any], times: Times) -> str:
    from datetime import datetime

    entries = row["entries"]
    newest = times.with_zone(datetime.fromisoformat(row["newest_at"])) if row["newest_at"] else ""
    said = [
        f"well, status {row['status']}",
        f"{row['tier']} tier" if row["tier"] else "",
        f"{entries:,} entries" if entries else "no entries",
        f"newest of {newest}" if newest else "",
        f"{row['sure_dates']:,} with a sure date, {row['full_bodies']:,} with a full body" if entries else "",
        f"{row['seconds']:.2f} s",
    ]
    return ", ".join(filter(None, said))


def _unwell(row: dict[str, Any]) -> str:
    error = safe_to_show(row["error"] or "", 500)
    return f"not well: {row['outcome']} ({row['words']}): {error}, {row['seconds']:.2f} s"


def _notes(row: dict[str, Any]) -> list[str]:
    redirects = row["redirects"]
    where = f"{redirects} redirect{'s' * (redirects != 1)}, to {row['final_url']}" if redirects else ""
    moved = f"moved for good to {row['moved_to']}" if row["moved_to"] else ""
    return [*filter(None, (where, moved)), *(f"warning: {warning}" for warning in row["warnings"])]
