"""The commands `feedmill dead …`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from services.cli.calls.opening import open_api
from services.cli.options import AsJson, Grep, OfFeed, Utc, Wide, Yes
from services.cli.output import Column, Times, confirm, console, print_table
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json

if TYPE_CHECKING:
    from services.api.models.dead_letters import Purged
    from services.cli.calls.api import Api

app = typer.Typer(help="Messages that could not be handled: look, requeue, purge.", no_args_is_help=True)

Service = Annotated[str | None, typer.Option(help="Only this service's dead queue, such as writer.")]
Limit = Annotated[
    int,
    typer.Option(
        "--limit", "--most", min=1, max=10_000, help="Look at so many letters of each queue, the oldest first."
    ),
]
Ids = Annotated[
    list[str] | None, typer.Argument(help="Message ids, as `feedmill dead list` shows them, or their beginnings.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]

PATH = "/api/dead-letters"


@app.command("list")
def list_letters(
    service: Service = None,
    feed: OfFeed = None,
    grep: Grep = None,
    limit: Limit = 100,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List dead letters with the reason why they died."""
    from services.api.models.dead_letters import Letters

    with open_api(database=feed is not None and not feed.isdecimal()) as api:
        found = api.get(PATH, Letters, service=service, feed=feed, q=grep, limit=limit)
    rows = [letter.model_dump() for letter in found.items]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    among = f" among the oldest {limit} of a queue: --limit looks at more" * found.more
    show_letters(rows, times, wide=wide, note=f"{len(rows)} dead letters{among}; {times.note}")


def show_letters(rows: Sequence[dict[str, Any]], times: Times, *, wide: bool, note: str) -> None:
    """Print letters (`DeadLetter.summary`) as a table."""
    columns = (
        Column("died", lambda row: _moment(row["died_at"], times)),
        Column("reason"),
        Column("error", flexible=True),
        Column("feed", "feed_id", right=True),
        Column("queue", flexible=True),
        Column("message", "message_id", cut=8),
    )
    print_table(columns, rows, wide=wide, note=note)


def _moment(text: str, times: Times) -> str:
    """Return when a letter died; the header may hold anything."""
    try:
        return times(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return text[:20]


@app.command()
def show(
    message_id: Annotated[str, typer.Argument(help="As `feedmill dead list` shows it, or its beginning.")],
    service: Service = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: its headers and its body."""
    from services.api.models.dead_letters import WholeLetter

    with open_api(database=False) as api:
        letter = api.get(f"{PATH}/{quote(message_id, safe='')}", WholeLetter, service=service, limit=limit)
    if as_json:
        print(ascii_json(letter.model_dump()))
        return
    for name, value in letter.headers.items():
        console.print(f"{name}: {value}", soft_wrap=True, highlight=False)
    print(letter.body)


@app.command()
def requeue(
    ids: Ids = None, everything: All = False, service: Service = None, limit: Limit = 1000, as_json: AsJson = False
) -> None:
    """Send dead letters back to the queue where they failed, to be handled as if for the first time."""
    body = _chosen(ids, service, limit, everything=everything)
    with open_api(database=False) as api:
        answer = api.call("POST", f"{PATH}/requeue", body=body).json()
    _say(answer, f"{answer['requeued']} requeued", as_json=as_json)


@app.command()
def purge(
    ids: Ids = None,
    everything: All = False,
    service: Service = None,
    limit: Limit = 1000,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Throw dead letters away for good, after a question."""
    body = _chosen(ids, service, limit, everything=everything)
    with open_api(database=False) as api:
        found = _purge(api, body | {"dry_run": True})
        if found.purged and not yes:
            confirm(f"throw {found.purged} dead letters away for good?")
        if found.purged:
            found = _purge(api, body | {"ids": list(dict.fromkeys(found.ids)), "all": False})
    _say(found.model_dump(), f"{found.purged} purged", as_json=as_json)


def _say(answer: object, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print(ascii_json(answer))
    else:
        console.print(sentence)


def _purge(api: Api, body: dict[str, Any]) -> Purged:
    from services.api.models.dead_letters import Purged

    return Purged.model_validate_json(api.call("POST", f"{PATH}/purge", body=body).content)


def _chosen(ids: list[str] | None, service: str | None, limit: int, *, everything: bool) -> dict[str, Any]:
    if bool(ids) == everything:
        raise ConfigurationError("say which: message ids, or --all")
    return {"ids": ids or [], "all": everything, "service": service, "limit": limit}
