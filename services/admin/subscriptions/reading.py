"""Opens a list of feeds: finds out how it is written, and that all of it can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from typing import BinaryIO

from services.admin.subscriptions.model import BadList, Flaws, Format, Listed
from services.admin.subscriptions.opml import read_opml, read_salvaged
from services.admin.subscriptions.source import Source
from services.admin.subscriptions.tables import has_header, read_csv, read_list
from services.fetcher.parse.document import read_prolog

MAX_FEEDS = 1_000_000
"""Of one list: about so many URLs are remembered, to find those that come twice."""

HEAD_CHARACTERS = 65_536

Reader = Callable[[Iterable[str], Flaws], Iterator[Listed]]

READERS: dict[Format, Reader] = {Format.OPML: read_opml, Format.CSV: read_csv, Format.LIST: read_list}
SALVAGERS: dict[Format, Reader] = {
    Format.OPML: read_salvaged,
    Format.CSV: partial(read_csv, strict=False),
    Format.LIST: read_list,
}

_FEED_ROOTS = frozenset({"rss", "rdf", "feed", "channel"})
_HAS_URL = re.compile(r"(?:https?|feed)://\S", re.IGNORECASE)
_ROW_WITHOUT_HEADER = re.compile(r'"?https?://[^\s"]+"?\s*[,;\t]\s*["A-Z]')


class FeedList:
    """A list whose feeds can all be read, as often as they are wanted."""

    def __init__(self, source: Source, form: Format, reader: Reader, flaws: Flaws, feeds: int) -> None:
        self.format = form
        self.encoding = source.encoding
        self.flaws = flaws
        self.feeds = feeds
        """How many feeds it has, those included that have no URL or come twice."""
        self._source = source
        self._reader = reader

    def read(self) -> Iterator[Listed]:
        """Yield the feeds in their order."""
        return _read(self._reader, self._source, Flaws())


def open_list(file: BinaryIO, form: Format | None = None, *, salvage: bool = False) -> FeedList:
    """Return the list in a file, after reading all of it once.

    Args:
        file: at its beginning; `seekable` makes a pipe one that can be read twice.
        form: how it is written; None: recognised by its content.
        salvage: read what can be read of a broken file. Its flaws say what is wrong.

    Raises:
        BadList: it is no list of feeds, or broken.
    """
    flaws = Flaws()
    source = Source(file, flaws)
    of_encoding = deepcopy(flaws)
    form = form or recognise(_head(source))
    reader = READERS[form]
    try:
        feeds = _count(_read(reader, source, flaws))
    except BadList as error:
        if not (salvage and error.salvageable):
            raise
        broken, reader, flaws = error, SALVAGERS[form], of_encoding
        flaws.note(f"{str(broken).partition(': ')[2]}; what can be read was taken", lambda: broken.line)
        feeds = _count(_read(reader, source, flaws))
    if not feeds:
        raise BadList(1, f"there is no feed in it (read as {form})")
    return FeedList(source, form, reader, flaws, feeds)


def _read(reader: Reader, source: Source, flaws: Flaws) -> Iterator[Listed]:
    return reader(source.blocks(flaws), flaws)


def _count(feeds: Iterator[Listed]) -> int:
    """Return how many feeds there are. Raises BadList, with the number of feeds before the bad place."""
    number = 0
    try:
        for number, listed in enumerate(feeds, 1):
            if number > MAX_FEEDS:
                raise BadList(listed.line, f"more than {MAX_FEEDS:,} feeds: split the file")
    except BadList as error:
        error.feeds_before = number
        raise
    return number


def _head(source: Source) -> str:
    head = ""
    for block in source.blocks(Flaws()):
        head = (head + block).lstrip("\ufeff \t\n")
        if len(head) >= HEAD_CHARACTERS:
            break
    return head


def recognise(head: str) -> Format:
    """Return how the list that begins so is written; `head` has no white space at its beginning.

    Raises:
        BadList: it is no list of feeds; says what it is.
    """
    if not head:
        raise BadList(1, "the file is empty")
    if head.startswith("<"):
        return _recognise_markup(head)
    if head.startswith(("{", "[")):
        raise BadList(1, "this is JSON: export the feeds as OPML or CSV")
    lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")] or [""]
    if "://" not in lines[0] and has_header(lines[0]):
        return Format.CSV
    if not _HAS_URL.search(head):
        raise BadList(1, "no list of feeds: neither OPML, nor CSV with a header, nor URLs with http:// or https://")
    if _ROW_WITHOUT_HEADER.match(lines[0]):
        raise BadList(1, "this looks like CSV without a header: write one, such as url,name,tags, as the first line")
    is_table = any(delimiter in lines[0] for delimiter in ",;\t") and not _HAS_URL.search(lines[0])
    return Format.CSV if is_table else Format.LIST


def _recognise_markup(head: str) -> Format:
    prolog = read_prolog(head)
    root = prolog.root
    if root == "opml" or (not root and len(head) >= HEAD_CHARACTERS):
        return Format.OPML
    if root in _FEED_ROOTS:
        raise BadList(1, "this is a feed, not a list of feeds: `feedmill feeds add URL` takes its URL")
    if prolog.is_html or root in {"html", "head", "body", "title", "meta", "script", "div", "p", "dl", "h1"}:
        raise BadList(1, "an HTML page instead of a list: it may be a login page; export the feeds again")
    raise BadList(1, f"XML with the root element <{root[:40]}> instead of <opml>" if root else "no element of OPML")
