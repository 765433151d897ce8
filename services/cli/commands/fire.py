"""The command `feedmill fire`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.calls.feeds import find_feed
from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Utc, Wide
from services.cli.output import Column, Times, console, print_facts, print_table
from shared.observability.display import ascii_json, safe_to_show

if TYPE_CHECKING:
    from services.api.models.fires import Fire

POLL_SECONDS = 20.0

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has ended, and show what it brought.")]


def fire(
    feed: Annotated[str, typer.Argument(help="A feed's id, or its URL.")],
    dry_run: DryRun = False,
    wait: Wait = False,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a feed now, ahead of the backlog. Its host's limits hold as ever; at most once a minute for real."""
    from services.api.models.fires import Fire  # FastAPI takes as long as all other imports of the command

    with open_api() as api:
        answer = api.call("POST", f"/api/feeds/{find_feed(api, feed)}/fire", body={"dry_run": dry_run})
        task = Fire.model_validate_json(answer.content)
        while wait and task.status == "running":
            task = api.get(f"/api/fires/{task.id}", Fire, wait=POLL_SECONDS)
    if as_json:
        print(ascii_json(task.model_dump()))
    else:
        _show(task, Times(utc=utc, wide=wide), wide=wide)
    if task.status == "error":
        raise typer.Exit(1)


def _show(task: Fire, times: Times, *, wide: bool) -> None:
    if task.status == "running":
        console.print(f"fire {task.id} of feed {task.feed_id} is running", soft_wrap=True)
        return
    if task.entries:
        columns = (
            Column("state"),
            Column("published", lambda row: times(row["published_at"])),
            Column("quality", "content_quality"),
            Column("title", flexible=True),
            Column("flags", lambda row: ", ".join(row["flags"]), flexible=True),
            Column("md5", cut=8),
            Column("url", below=True),
        )
        print_table(columns, [entry.model_dump() for entry in task.entries], wide=wide, note=times.note)
    facts: list[tuple[str, object]] = [("fire", task.id), ("feed", task.feed_id), ("status", task.status)]
    if task.error:
        facts.append(("error", safe_to_show(task.error)))
    if task.fetched is not None:
        counts = f"{task.fetched:,} entries: {task.new:,} new, {task.changed:,} changed, {task.known:,} known"
        facts.append(("would bring" if task.dry_run else "brought", counts))
    print_facts(facts)
