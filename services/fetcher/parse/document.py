"""From a body's text to the XML document that the strict and the lenient tier read."""

from __future__ import annotations

from dataclasses import dataclass

from services.fetcher.parse.model import Deadline, NotAFeed
from services.fetcher.parse.prolog import cut_markup, find_feed_root, read_prolog, settle_references, strip_illegal

FEED_ROOTS = frozenset({"rss", "feed", "rdf", "channel"})
_HTML_ROOTS = frozenset({"html", "head", "body"})
_HTML_PIECES = frozenset({"b", "br", "center", "div", "font", "h1", "meta", "p", "script", "style", "table", "title"})


@dataclass(frozen=True, slots=True)
class Document:
    """A document from its root element on, safe to parse: without DTD, references settled, illegal characters gone."""

    source: str
    warnings: tuple[str, ...] = ()
    """What was put up with."""


def prepare(text: str, deadline: Deadline | None = None) -> Document:
    """Return the document in `text`.

    Raises:
        NotAFeed: there is no feed's root element: an HTML page, another XML, no markup at all.
        OutOfTime: the deadline has passed.
    """
    text, warnings = strip_illegal(text), list[str]()
    prolog = read_prolog(text, deadline)
    start = prolog.start
    if not prolog.root:
        raise NotAFeed("neither XML nor JSON" if text.strip() else "an empty body")
    if prolog.root in _HTML_ROOTS:
        raise NotAFeed("an HTML page")
    if prolog.root not in FEED_ROOTS:
        start = find_feed_root(text, prolog.start)
        if start < 0:
            is_html = prolog.is_html or prolog.root in _HTML_PIECES
            raise NotAFeed("an HTML page" if is_html else f"XML with the root element <{prolog.root[:40]}>")
        warnings.append("something else stands before the feed")
    text, is_cut = cut_markup(text[start:])
    if is_cut:
        warnings.append("more markup than any feed needs: cut")
    return Document(settle_references(text, prolog.declarations), tuple(warnings))
