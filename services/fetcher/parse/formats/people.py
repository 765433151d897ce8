"""Who wrote an entry, as feedparser takes it: names and addresses from elements, or both in one text."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from services.fetcher.parse.formats.elements import SCOPE, Elements, check_meaningless
from services.fetcher.parse.formats.inline import leaf_text, repaired
from services.fetcher.parse.formats.tree import Attributes, attributes_of
from services.fetcher.parse.model import Declined

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
            authors[-1][key] = text
        elif reader.names[child.tag] == "title" and not child.keys():  # feedparser takes it for the entry's
            reader.title(child, {}, depth + 1)
        else:
            _check_empty(child, reader.names[child.tag])
    text = "".join([element.text or "", *[child.tail or "" for child in element]])
    authors[-1]["text"] = repaired(text.strip())


def pass_person(reader: Elements, element: Element, _attributes: Attributes, _depth: int) -> None:
    """Pass over a person who is not the author."""
    for child in element:
        if not SCOPE.isdisjoint(attributes_of(child)):
            raise Declined("a person with a language or a base")
        if reader.names[child.tag] in DETAILS:
            leaf_text(child)
        else:
            _check_empty(child, reader.names[child.tag])


def _check_empty(element: Element, name: str) -> None:
    check_meaningless(name)
    if leaf_text(element) and element.keys():  # it becomes the person's
        raise Declined(f"<{name}> within a person")
