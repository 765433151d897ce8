"""What the strict tier reads beside texts and links: people, podcast categories, images, chapters, places."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from services.fetcher.parse.formats.strict.elements import SCOPE, Elements
from services.fetcher.parse.formats.strict.handlers import check_meaningless
from services.fetcher.parse.formats.strict.inline import leaf_text, plain_text, repaired
from services.fetcher.parse.formats.strict.tree import MAX_DEPTH, Attributes, attributes_of
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
_OF_ENTRY = {"title": Elements.title, "id": Elements.guid, "summary": Elements.summary, "link": Elements.link}
"""What feedparser takes for the entry's if it stands within an author, as in the Atom of Mastodon and its kin."""
OF_IMAGE = frozenset({"title", "link", "description", "url", "width", "height"})


def read_author(reader: Elements, element: Element, _attributes: Attributes, depth: int) -> None:
    """Read an author: a text, or elements for name and address."""
    authors = reader.fields.setdefault("authors", [])
    if not len(element):
        authors.append({"text": plain_text(element)})
        return
    authors.append({})
    for child in element:
        if not SCOPE.isdisjoint(attributes_of(child)):
            raise Declined("a person with a language or a base")
        text, name = leaf_text(child), reader.names[child.tag]
        if key := DETAILS.get(name):
            authors[-1][key] = text
        elif read := _OF_ENTRY.get(name):
            read(reader, child, attributes_of(child), depth + 1)
        else:
            _check_empty(child, name)
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


def itunes_category(reader: Elements, element: Element, attributes: Attributes, depth: int) -> None:
    """Read a podcast's category, and those within."""
    scheme, term = "http://www.itunes.com/", attributes.get("text")
    if not len(element):
        reader.category(element, {"scheme": scheme, **({"term": term} if term is not None else {})}, depth)
        return
    reader.tag(term, scheme, None)
    for child in element:
        given = attributes_of(child)
        if reader.names[child.tag] != "itunes_category" or depth >= MAX_DEPTH or not SCOPE.isdisjoint(given):
            raise Declined("something within a category")
        if (element.text or "").strip() or (child.tail or "").strip():
            raise Declined("a text beside categories")
        itunes_category(reader, child, given, depth + 1)


def nested_category(reader: Elements, element: Element, _attributes: Attributes, depth: int) -> None:
    """Pass over a feed's categories within categories."""
    for child in element:
        if reader.names[child.tag] != "itunes_category" or depth >= MAX_DEPTH:
            raise Declined("something within a category")
        nested_category(reader, child, {}, depth + 1)


def media_category(reader: Elements, element: Element, attributes: Attributes, depth: int) -> None:
    """Read a category of Media RSS."""
    attributes.setdefault("scheme", "http://search.yahoo.com/mrss/category_schema")
    reader.category(element, attributes, depth)


def image_of_entry(reader: Elements, element: Element, _attributes: Attributes, depth: int) -> None:
    """Pass over the image of an entry, but for its title and description."""
    reader.title_depth = -1
    for child in element:
        name = reader.names[child.tag]
        if name not in OF_IMAGE or child.keys():
            raise Declined(f"<{name}> within an entry's image")
        if name == "title":  # feedparser takes it for the entry's, and the description too
            reader.title(child, {}, depth + 1)
        elif name == "description":
            reader.summary(child, {}, depth + 1, "text/html")
        else:
            leaf_text(child)


def chapter(_reader: Elements, element: Element, attributes: Attributes, _depth: int) -> None:
    """Pass over a chapter."""
    leaf_text(element)
    if "start" not in attributes:
        raise Declined("a chapter at which feedparser fails")


def place(reader: Elements, element: Element, _attributes: Attributes, _depth: int) -> None:
    """Pass over a place by its point, which feedparser takes apart if it is in the usual system."""
    for point in element:
        if reader.names[point.tag] != "gml_point" or point.keys():
            raise Declined("an odd place")
        for position in point:
            leaf_text(position)
            if reader.names[position.tag] != "gml_pos" or position.keys():
                raise Declined("an odd place")
