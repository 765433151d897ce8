"""The handler of each element, and the elements that have none since they mean nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from services.fetcher.parse.formats.lenient.guarded_feedparser import HANDLED
from services.fetcher.parse.formats.strict.elements import Elements, Handler
from services.fetcher.parse.formats.strict.tree import Attributes
from services.fetcher.parse.model import Declined

# feedparser makes a field of each unknown element. An element of such a name would be taken for a field of ours.
_RESERVED = re.compile(
    r"links|authors|date|guid_is_link|language|media_content|tags|"
    r".*_(?:parsed|detail)|summary|content|title|published|created|updated|author|id|subtitle|link"
)


def is_meaningless(name: str) -> bool:
    """Return whether an element of this name has no meaning for feedparser and for `fields`."""
    return name not in HANDLED and not _RESERVED.fullmatch(name)


def check_meaningless(name: str) -> None:
    """Decline an element that has a meaning for feedparser or for `fields`."""
    if not is_meaningless(name):
        raise Declined(f"<{name}> where it is not expected")


class Handlers(dict[str, Handler]):
    """The handler of each tag: looked up once in a table of feedparser's names."""

    def __init__(self, table: Mapping[str, Handler], names: Mapping[str, str]) -> None:
        super().__init__()
        self._table, self._names = table, names

    def __missing__(self, tag: str) -> Handler:
        name = self._names[tag]
        other = Elements.meaningless if is_meaningless(name) else Elements.unexpected
        found = self[tag] = self._table.get(name, other)
        return found


def text_into(key: str, default: str) -> Handler:
    """Return a handler that reads a text into a field; `default` is its media type if none is declared."""

    def read(reader: Elements, element: Element, attributes: Attributes, depth: int) -> None:
        reader.text(element, attributes, depth, key, default)

    return read


def plain_into(key: str) -> Handler:
    """Return a handler that reads a plain text into a field."""

    def read(reader: Elements, element: Element, _attributes: Attributes, depth: int) -> None:
        reader.plain(element, depth, key)

    return read
