"""Lists of feeds, in and out."""

from __future__ import annotations

import io
import logging
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from itertools import chain
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, cast

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from services.admin.actor import Actor, Scope, audit
from services.admin.feeds.tags import MAX_TAG_CHARACTERS, MAX_TAGS, clean_tag, merge_tags
from services.admin.registry import connect
from services.admin.subscriptions.exporting import export_feeds
from services.admin.subscriptions.model import Format
from services.admin.subscriptions.running import Fact, RunningImport, make_rules, open_for_import
from services.admin.subscriptions.source import MAX_BYTES
from services.api.access import Editor, Reader
from services.api.problems import problem
from services.api.resources import Here, Resources
from services.api.streams import LINES, Lines, Streamed, file_parts, lines_like, lines_of, room_on_disk, spool
from services.api.turns import Places
from shared.errors import ConfigurationError, DatabaseUnavailable, FeedmillError
from shared.observability.display import ascii_json

log = logging.getLogger(__name__)

router = APIRouter(prefix="/api/feeds", tags=["lists"])

AT_ONCE = 4
"""Imports under way in one process. Each has a connection of its own."""

MEDIA_TYPES = {Format.OPML: "text/x-opml; charset=utf-8", Format.CSV: "text/csv", Format.LIST: "text/plain"}
SECRETS_HEADER = "Feedmill-Secret-Urls"

_places = Places(AT_ONCE, f"{AT_ONCE} lists are being imported")

_OPML = '<opml version="2.0"><body><outline text="News" xmlUrl="https://news.example/feed"/></body></opml>'
_BODY = {
    "required": True,
    "description": "OPML, CSV with a header, or URLs, one a line; up to 512 MiB and a million feeds.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}, "example": _OPML}},
}


_LINES: tuple[Fact, ...] = (
    {"opened": {"format": "opml", "encoding": "utf-8", "feeds": 2, "warnings": []}},
    {"skipped": {"line": 3, "reason": "not_http", "detail": "the scheme is 'ftp'; …", "url": "ftp://news.example/"}},
    {"progress": {"read": 2, "added": 1}},
    {
        "done": {
            "dry_run": False,
            "listed": 2,
            "added": 1,
            "tagged": 0,
            "refused": 1,
            "reasons": {"not_http": 1},
            "first_polls_within_seconds": 0.0,
        }
    },
)


_EXAMPLES = {
    "text/x-opml": {"schema": {"type": "string"}, "example": _OPML},
    "text/csv": {"schema": {"type": "string"}, "example": "url,name,tags\nhttps://news.example/feed,News,\n"},
    "text/plain": {"schema": {"type": "string"}, "example": "https://news.example/feed\n"},
}


class _Text(Response):
    media_type = "text/x-opml"


FormatOfList = Annotated[
    Format | None, Query(alias="format", description="How it is written. By default its content tells.")
]
TagsForAll = Annotated[
    list[Annotated[str, Query(max_length=MAX_TAG_CHARACTERS)]],
    Query(alias="tag", max_length=MAX_TAGS, description="Give all its feeds this tag, too; repeatable."),
]
DryRun = Annotated[bool, Query(description="Only say what would be done.")]
Salvage = Annotated[bool, Query(description="Take from a broken file what can be read. Otherwise it is refused.")]
OfTag = Annotated[str | None, Query(max_length=MAX_TAG_CHARACTERS, description="Only feeds with this tag.")]


@router.post(
    "/import",
    summary="Import a list of feeds",
    response_class=Lines,
    responses=lines_like(*_LINES, description="A JSON object a line, while the import goes on."),
    openapi_extra={"requestBody": _BODY},
)
async def import_feeds(
    request: Request,
    here: Here,
    actor: Editor,
    form: FormatOfList = None,
    tags: TagsForAll = [],  # noqa: B006 - FastAPI's way to say that it may be left out; nobody changes it
    dry_run: DryRun = False,
    salvage: Salvage = False,
) -> Response:
    """Register the feeds of a list; folders become tags. The body is the file's bytes.

    A list that can't be read is refused whole with 422. Otherwise the answer is a line of JSON for each line that adds
    no feed, one for each thousand feeds that were read, and at the end `done` or `error`. A client that goes away ends
    the import after the chunk that is under way; the same import again adds the rest.
    """
    merged = tuple(merge_tags((), (clean_tag(tag, "query.tag") for tag in tags)))
    rules = make_rules(here.fetcher, merged, dry_run=dry_run)
    with _places.place(keep=True), ExitStack() as kept:
        file = kept.enter_context(await spool(request, MAX_BYTES))
        opened = await anyio.to_thread.run_sync(lambda: open_for_import(file, form, salvage=salvage))
        running = RunningImport(str(here.settings.database_url), opened, rules)
        facts = running.facts()
        first = await anyio.to_thread.run_sync(next, facts)  # a database that is away is a 503
        held = kept.pop_all()  # until the end of the answer

    async def end() -> None:
        try:
            await anyio.to_thread.run_sync(facts.close)
            held.close()
        finally:
            _places.give_back()
        await _note(here, actor, running)

    lines = lines_of(chain([first], facts), _encode, partial(_problem, running))
    return Streamed(lines, LINES, at_end=end)


def _encode(facts: list[Fact]) -> bytes:
    return "".join(f"{ascii_json(fact)}\n" for fact in facts).encode()


def _problem(running: RunningImport, error: FeedmillError) -> Response:
    is_refused = isinstance(error, ConfigurationError)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_refused else HTTPStatus.SERVICE_UNAVAILABLE
    return problem(status, f"{error}. {running.done.added:,} new feeds are in; the same import again adds the rest")


async def _note(here: Resources, actor: Actor, running: RunningImport) -> None:
    """Write the audit row of an import that changed something, also of one that ended early."""
    counts = running.counts()
    if counts["dry_run"] or not (counts["added"] or counts["tagged"]):
        return
    try:
        async with here.database.transaction() as connection:
            await audit(connection, actor, "feed.import", None, counts)
    except DatabaseUnavailable as error:
        log.error("an import by %s has no audit row: %s; it did %s", actor.name, error, counts)


@router.get(
    "/export",
    summary="Export feeds as a list",
    response_class=_Text,
    responses={200: {"description": "The list.", "content": _EXAMPLES}},
)
async def export_list(
    here: Here, actor: Reader, form: Annotated[Format, Query(alias="format")] = Format.OPML, tag: OfTag = None
) -> Response:
    """All feeds, or those with a tag, as a list that other programs read; tags become folders in OPML.

    The header `Feedmill-Secret-Urls` says how many feeds have a password or a token in their URL. The scope `admin`
    gets them in full, any other with stars in their place.
    """
    masked = not actor.may(Scope.ADMIN)
    wanted = None if tag is None else clean_tag(tag, "query.tag")
    file, secrets = await anyio.to_thread.run_sync(_export, str(here.settings.database_url), form, wanted, masked)
    return Streamed(file_parts(file), MEDIA_TYPES[form], {SECRETS_HEADER: str(secrets)})


def _export(database_url: str, form: Format, tag: str | None, masked: bool) -> tuple[BinaryIO, int]:
    """Return the list as a file: a transaction must not wait for who reads it."""
    file = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 - who sends it closes it
    try:
        with room_on_disk():
            text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            with connect(database_url) as connection:
                secrets = export_feeds(connection, text, form, tag, masked=masked)
            text.detach()
            file.seek(0)
    except BaseException:
        file.close()
        raise
    return file, secrets
