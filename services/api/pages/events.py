"""Tells open pages that figures changed, as server-sent events."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from services.api.pages.frame import Visitor
from services.api.problems import ProblemError
from services.api.resources import Here, Resources
from services.api.streams import Streamed
from shared.errors import Unavailable

router = APIRouter(include_in_schema=False)

LOOK_SECONDS = 5.0
ROUNDS = 60
"""Then the answer ends, and the browser asks again: a login that has ended is noticed."""
STILL_ROUNDS = 6
"""Pages look so often even if nothing changed, for they say how long ago things were; and in the first round, for
figures may have changed between the page and its first event."""
MOST_READERS = 200
"""Open pages of one process."""
MOST_OF_A_LOGIN = 20
"""Of these, pages of one login: the others are for other people."""

_FIRST = "retry: {retry}\n\nevent: hello\ndata:\n\n"
RETRY_MS = 2000, 5000
"""A page that lost us comes back at some moment between: after a restart not all at once."""

_LOOK = b"event: look\ndata:\n\n"
_HEARTBEAT = b"event: beat\ndata:\n\n"
"""Scripts don't see comments, and have to notice that an API hangs."""

_readers: dict[object, int] = {}
"""Open pages with their login's id."""


@router.get("/events")
async def events_stream(here: Here, visitor: Visitor) -> StreamingResponse:
    """Say `look` when figures changed."""
    if len(_readers) >= MOST_READERS:
        reason = f"{MOST_READERS} pages are open already: this one does not follow"
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, reason, {"Retry-After": "60"})
    if visitor.token_id and list(_readers.values()).count(visitor.token_id) >= MOST_OF_A_LOGIN:
        reason = f"{MOST_OF_A_LOGIN} pages of this login are open already: this one does not follow"
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, reason, {"Retry-After": "60"})
    reader = object()
    _readers[reader] = visitor.token_id

    async def leave() -> None:
        _readers.pop(reader, None)

    return Streamed(_events(here), "text/event-stream", {"X-Accel-Buffering": "no"}, at_end=leave)


async def _events(here: Resources) -> AsyncGenerator[bytes, None]:
    yield _FIRST.format(retry=random.randint(*RETRY_MS)).encode()  # noqa: S311 - no secret
    seen = await _figures(here)
    look_at = time.monotonic() + random.uniform(-LOOK_SECONDS, 0.0)  # noqa: S311 - pages load anew each at its own moment
    for turn in range(1, ROUNDS + 1):
        while look_at <= time.monotonic():
            look_at += LOOK_SECONDS
        with suppress(TimeoutError):
            await asyncio.wait_for(here.stopping.wait(), look_at - time.monotonic())
        if here.stopping.is_set():
            return
        found = await _figures(here)
        yield _LOOK if found != seen or turn % STILL_ROUNDS == 1 else _HEARTBEAT
        seen = found


async def _figures(here: Resources) -> Any:
    """Return what is compared. All that ask share one look."""
    try:
        stats = (await here.scene.get()).stats
    except Unavailable as error:
        return str(error)
    feeds = vars(stats.counts.feeds).items() if stats.counts else ()
    counts = {name: value for name, value in feeds if "seconds" not in name}
    articles = stats.counts.articles if stats.counts else None
    return stats.levels, counts, articles, stats.hours, [alarm.name for alarm in stats.alarms]
