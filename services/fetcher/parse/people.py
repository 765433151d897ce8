"""Who wrote an entry, as feedparser takes it: names and addresses from elements, or both out of one text."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.elements import SCOPE, Elements, check_meaningless
from services.fetcher.parse.fields import Fields
from services.fetcher.parse.guarded import MAX_AUTHOR_CHARS
from services.fetcher.parse.inline import leaf_text, repaired
from services.fetcher.parse.model import Declined
from services.fetcher.parse.tree import Attributes, attributes_of

DETAILS = {
    "name": "name",
    "itunes_name": "name",
    "email": "email",
    "itunes_email": "email",
    "uri": "href",
    "url": "href",
    "homepage": "href",
}


def read_author(reader: Elements, element: Element, _attributes: Attributes, depth: int) -> None:
    """Read an author: a text, or elements for name and address."""
    authors = reader.fields.setdefault("authors", [])
    authors.append({})
    for child in element:
        if not SCOPE.isdisjoint(attributes_of(child)):
            raise Declined("a person with a language or a base")
        text = leaf_text(child)
        if key := DETAILS.get(reader.names[child.tag]):
            reader.fields.setdefault("author_detail", {})[key] = text
            _sync(reader.fields)
            authors[-1][key] = text
        elif reader.names[child.tag] == "title" and not child.keys():  # feedparser takes it for the entry's
            reader.title(child, {}, depth + 1)
        else:
            _check_empty(child, reader.names[child.tag])
    text = "".join([element.text or "", *[child.tail or "" for child in element]])
    reader.store("author", repaired(text.strip()), depth)
    _sync(reader.fields)


def pass_person(reader: Elements, element: Element, _attributes: Attributes, _depth: int) -> None:
    """Pass over a person who is not the author."""
    for child in element:
        if not SCOPE.isdisjoint(attributes_of(child)):
            raise Declined("a person with a language or a base")
        if reader.names[child.tag] in DETAILS:
            leaf_text(child)
        else:
            _check_empty(child, reader.names[child.tag])


def read_owner(reader: Elements, element: Element, _attributes: Attributes, _depth: int) -> None:
    """Read a podcast's owner, whom feedparser takes for the last author."""
    for child in element:
        if not SCOPE.isdisjoint(attributes_of(child)):
            raise Declined("a person with a language or a base")
        key, text = DETAILS.get(reader.names[child.tag]), leaf_text(child)
        if key in {"name", "email"}:
            _sync(reader.fields)
            reader.fields.setdefault("authors", [{}])[-1][key] = text
        elif not key:
            _check_empty(child, reader.names[child.tag])


def _check_empty(element: Element, name: str) -> None:
    check_meaningless(name)
    if leaf_text(element) and element.keys():  # it becomes the person's
        raise Declined(f"<{name}> within a person")


def _sync(fields: Fields) -> None:
    """Let the author's text and the details of the last author tell each other what one of them lacks."""
    author = fields.get("author")
    if author:
        fields["author"] = author = author[:MAX_AUTHOR_CHARS]
    detail = fields.get("authors", [{}])[-1]
    if detail or (author and "@" in author):
        _FeedParserMixin._sync_author_detail(_Context(fields))  # noqa: SLF001
    elif author:
        fields.setdefault("author_detail", detail)
        detail["name"] = author


class _Context:
    """All of feedparser's parser that its `_sync_author_detail` needs."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def _get_context(self) -> Fields:
        return self._fields
