"""Everything about one article."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse

from services.admin.articles import ledger
from services.admin.articles.marking import Piece, mark_differences, mark_entities
from services.admin.articles.names import name_feeds
from services.admin.articles.single import read_article
from services.admin.articles.stories import Version, read_story
from services.admin.errors import NotFound
from services.api.models.texts import PLAIN
from services.api.pages.articles.words import KINDS, QUALITY, STATES, flags_in_words, why_unsure
from services.api.pages.frame import Visitor, render
from services.api.resources import Here
from shared.observability.display import safe_to_show

router = APIRouter(include_in_schema=False)

MOST_SHOWN = 40_000
"""Characters of a text."""

MOST_PAIRS = 3
"""Stories side by side; further duplicates are links."""

ENTITIES = {"person": "People", "organisation": "Organisations", "place": "Places", "technology": "Technologies"}

_WIKIDATA = re.compile(r"Q[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True)
class Shown:
    """A piece of a text as the page shows it."""

    text: str
    entity: bool = False
    differs: bool = False
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class Pair:
    """Two articles of a story, and what differs."""

    first: Version
    other: Version
    titles: tuple[list[Shown], list[Shown]]
    texts: tuple[list[Shown], list[Shown]]


@router.get("/articles/{md5}")
async def article_page(
    request: Request, here: Here, _visitor: Visitor, md5: Annotated[str, Path(max_length=100, pattern=PLAIN)]
) -> HTMLResponse:
    """Show an article: pending, dead, or what the ledger still knows of it."""
    async with here.database.transaction() as connection:
        known = await ledger.read_ledger(connection, [md5])
        try:
            row: dict[str, Any] | None = await read_article(connection, md5)
        except NotFound:
            if not known:
                raise
            row = None
        about = row or known[0]
        story = await read_story(connection, about["md5"], about["duplicate_of"])
        names = await name_feeds(connection, [about["feed_id"], *(version.feed_id for version in story)])
    return render(
        request,
        "articles/article.html",
        md5=about["md5"],
        about=about,
        row=row,
        known=known[0] if known else None,
        names=names,
        pairs=_pair(story, about["md5"]),
        story=story,
        kinds=KINDS,
        **(_describe(row) if row else {}),
    )


def _describe(row: Mapping[str, Any]) -> dict[str, Any]:
    entities = row["entities"] or []
    return {
        "title": _shown(mark_entities(row["title"], "title", entities)),
        "text": _shown(mark_entities(row["body"][:MOST_SHOWN], "body", entities)),
        "more": max(len(row["body"]) - MOST_SHOWN, 0),
        "entities": {words: _named(kind, entities) for kind, words in ENTITIES.items() if _named(kind, entities)},
        "flags": flags_in_words(row["flags"]),
        "unsure": why_unsure(row["flags"]),
        "quality": QUALITY.get(row["content_quality"], row["content_quality"]),
        "state": STATES[row["state"]],
    }


def _named(kind: str, entities: Sequence[Mapping[str, Any]]) -> list[dict[str, str | None]]:
    """Return names, and the addresses at Wikidata where there are."""
    return [
        {"name": entity["name"], "url": f"https://www.wikidata.org/wiki/{id_}" if _WIKIDATA.fullmatch(id_) else None}
        for entity in entities
        if entity["kind"] == kind
        for id_ in [str(entity.get("id") or "")]
    ]


def _shown(pieces: Sequence[Piece]) -> list[Shown]:
    shown = []
    for piece in pieces:
        text = safe_to_show(piece.text, None, lines=True)
        if piece.entity is None:
            shown.append(Shown(text, differs=piece.differs))
        else:
            kind = str(piece.entity["kind"])
            title = safe_to_show(f"{kind}: {piece.entity['name']}", 200)
            shown.append(Shown(text, entity=True, kind=kind if kind in ENTITIES else "", title=title))
    return shown


def _pair(story: Sequence[Version], md5: str) -> list[Pair]:
    """Return the first article beside this one; beside its duplicates if this one is the first."""
    if not story or story[0].kind:
        return []
    first = story[0]
    others = [version for version in story[1:] if md5 in {first.md5, version.md5}][:MOST_PAIRS]
    return [
        Pair(first, other, _differences(first.title, other.title), _differences(first.text, other.text))
        for other in others
    ]


def _differences(first: str | None, other: str | None) -> tuple[list[Shown], list[Shown]]:
    """Return both texts; what differs is marked where both are there."""
    if first is None or other is None:
        return _whole(first), _whole(other)
    ours, others = mark_differences(first, other)
    return _shown(ours), _shown(others)


def _whole(text: str | None) -> list[Shown]:
    return [] if text is None else _shown([Piece(text)])
