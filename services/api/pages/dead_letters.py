"""Messages that no service could handle."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from services.admin.articles.names import name_feeds
from services.admin.articles.pending import to_utc
from services.admin.dead_letters.ids import read_letter
from services.admin.dead_letters.letters import read_letters, select_stages
from services.admin.errors import Conflict, Invalid, NotFound
from services.api.models.texts import PLAIN
from services.api.pages.frame import Visitor, render
from services.api.resources import Here, Resources
from shared.errors import FeedmillError
from shared.observability.display import safe_to_show

router = APIRouter(include_in_schema=False)

LOOKED_AT = 1000
"""A letter is looked for among so many of each queue."""

LOOK_SECONDS = 20.0
"""How long a person waits for the broker."""

MOST_SHOWN = 20_000
"""Characters of a body."""

REASONS = {
    "undecodable": "no message of this kind, or of a version that this one can't read: requeue it after the upgrade or"
    " rollback; purge somebody else's",
    "too_large": "too large: raise FEEDMILL_MAX_MESSAGE_BYTES and the broker's max_message_size, then requeue it",
    "exhausted": "an error, five times: repair what the error says, then requeue it",
    "unprocessable": "data that no table takes: repair what the error says, then requeue it",
    "delivery_limit": "a hundred deliveries without acknowledgement, so it kills its reader: don't requeue it before"
    " you know why",
}


class Asked(BaseModel):
    """What the page is asked for."""

    model_config = ConfigDict(str_strip_whitespace=True)

    letter: Annotated[str, Field(max_length=255, pattern=PLAIN)] = ""
    q: Annotated[str, Field(max_length=1000, pattern=PLAIN)] = ""
    most: Literal["100", "1000"] = "100"


@router.get("/dead-letters")
async def dead_letters_page(
    request: Request, here: Here, _visitor: Visitor, asked: Annotated[Asked, Query()]
) -> HTMLResponse:
    """Show the oldest letters of each queue, and one of them whole."""
    stages = select_stages(here.topology, None)
    most = int(asked.most)
    levels = (await here.broker_look.get(patience_seconds=LOOK_SECONDS)).levels  # to read a queue takes a connection
    filled = [stage for stage in stages if (level := levels.get(stage.dead)) and level.ready]
    rows = [letter.summary() for letter in await read_letters(here.broker(), here.topology, filled, most)]
    looked_at = Counter(row["queue"] for row in rows)
    if asked.q:
        rows = [row for row in rows if asked.q.lower() in " ".join(map(str, row.values())).lower()]
    letter, trouble = await _read_one(here, asked.letter) if asked.letter else (None, None)
    return render(
        request,
        "dead_letters.html",
        asked=asked,
        queues={stage.service: [_read_headers(row) for row in rows if row["queue"] == stage.dead] for stage in stages},
        is_cut={stage.service: looked_at[stage.dead] >= most for stage in stages},
        names=await _names(here, [row for row in rows if isinstance(row["feed_id"], int)]),
        letter=letter,
        trouble=trouble,
        reasons=REASONS,
        most=most,
    )


def _read_headers(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the feed's id and the moment `died`, None unless they are such: headers may hold anything."""
    id_ = row["feed_id"]
    try:
        died = to_utc(datetime.fromisoformat(row["died_at"]))
    except (ValueError, Invalid):
        died = None
    return row | {"feed_id": id_ if type(id_) is int and 0 <= id_ < 2**63 else None, "died": died}


async def _read_one(here: Resources, message_id: str) -> tuple[dict[str, Any] | None, str | None]:
    """Return a letter with its headers and body; or why there is none."""
    stages = select_stages(here.topology, None)
    try:
        letter = await read_letter(here.broker(), here.topology, stages, message_id, LOOKED_AT)
    except (NotFound, Conflict) as error:
        return None, str(error)
    headers = {safe_to_show(name): safe_to_show(value) for name, value in sorted(letter.delivery.headers.items())}
    body = letter.body()
    more = len(body) - MOST_SHOWN
    shown = {"headers": headers, "body": body[:MOST_SHOWN], "more": max(more, 0)}
    return _read_headers(letter.summary()) | shown, None


async def _names(here: Resources, rows: list[dict[str, Any]]) -> dict[int, str]:
    """Return the names of the letters' feeds; none while the database is away: letters are at the broker."""
    ids = [id_ for row in rows if (id_ := _read_headers(row)["feed_id"]) is not None]
    try:
        async with here.database.transaction() as connection:
            return await name_feeds(connection, ids)
    except FeedmillError:
        return {}
