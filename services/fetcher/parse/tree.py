"""A document as a tree, with the names that feedparser has for its elements and attributes.

Built by expat, which is also the parser beneath feedparser: what is well-formed for one is for the other. feedparser
knows namespaces by their URI, whatever the prefix, and also by their usual prefix, whatever the URI; an unknown default
namespace counts as none; declarations stay in force after their element has ended. All of this is told again here.
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.model import Declined

MAX_DEPTH = 100
MAX_ELEMENTS = 200_000
"""10 MiB of the densest real feed at hand would have 175,000. A larger tree is declined: it would take 100 MB."""

_USERLAND = "http://backend.userland.com/rss"
_XLINK = "http://www.w3.org/1999/xlink"
_STANDARD: dict[str, str] = {uri.lower(): prefix for uri, prefix in _FeedParserMixin.namespaces.items()}
_CASELESS = frozenset({"rel", "type"})

Attributes = dict[str, str]


class Node:
    """An element. Comments and processing instructions are left out, the text around them is one."""

    __slots__ = ("attributes", "children", "local", "name", "tail", "text")

    def __init__(self, name: str, local: str, attributes: Attributes) -> None:
        self.name = name
        """feedparser's: `title`, `dc_date`, `foo_bar`."""
        self.local = local
        self.attributes = attributes
        self.text = ""
        self.tail = ""
        self.children: list[Node] = []


class Tree:
    """The root element and the version by which feedparser tells Atom from RSS."""

    def __init__(self, source: str) -> None:
        self.version = ""
        self._in_use: dict[str, str] = {}
        self._mapped: dict[str | None, str] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._declared: Attributes = {}
        self._count = 0
        self._open = [Node("", "", {})]
        parser: Any = expat.ParserCreate(None, " ")
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.buffer_size = max(len(source), 1024)
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        try:
            parser.Parse(source, True)
        except expat.ExpatError as error:
            raise Declined("not well-formed") from error
        self.root = self._open[0].children[0]

    def _start(self, tag: str, given: Attributes) -> None:
        self._count += 1
        if len(self._open) > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise Declined("more elements than any feed needs")
        name, local = self._names.get(tag) or self._name(tag)
        attributes = self._attributes(given) if given or self._declared else {}
        node = Node(name, local, attributes)
        self._open[-1].children.append(node)
        self._open.append(node)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _data(self, data: str) -> None:
        node = self._open[-1]
        if node.children:
            node.children[-1].tail += data
        else:
            node.text += data

    def _declare(self, prefix: str | None, uri: str | None) -> None:
        if not uri:
            return
        if uri.split() != [uri]:
            raise Declined("white space in a namespace")
        if uri == _XLINK and prefix:
            self._declared[f"xmlns:{prefix}".lower()] = uri
        lower = uri.lower()
        if not self.version and not self._count:
            self.version = _version(prefix, lower)
        if _USERLAND[7:] in lower:
            uri = lower = _USERLAND
        standard = _STANDARD.get(lower)
        if standard is None:
            self._in_use[prefix or ""] = uri
        else:
            self._mapped[prefix] = standard
            self._in_use[standard] = uri
        self._names.clear()

    def _name(self, tag: str) -> tuple[str, str]:
        uri, local = tag.split(" ")[:2] if " " in tag else ("", tag)  # and the given prefix, if there is one
        local, prefix = local.lower(), ""
        if uri:
            lower = uri.lower()
            prefix = _STANDARD.get(_USERLAND if _USERLAND[7:] in lower else lower, "")
            if not prefix:
                prefix = next((name for name, value in self._in_use.items() if name and value == uri), "")
            prefix = prefix.lower()
            prefix = self._mapped.get(prefix, prefix)
        found = self._names[tag] = f"{prefix}_{local}" if prefix else local, local
        return found

    def _attributes(self, given: Attributes) -> Attributes:
        found, self._declared = self._declared, {}
        qualified: Attributes = {}
        for key, value in given.items():
            uri, _, rest = key.partition(" ")
            if not rest:
                name = key.lower()
                found[name] = qualified[name] = value.lower() if name in _CASELESS else value
                continue
            local, _, prefix = rest.lower().partition(" ")
            standard = _STANDARD.get(uri.lower(), "").lower()
            # As feedparser does: an attribute of an unknown namespace stands in for one of none.
            name = f"{standard}:{local}" if standard else local
            found[name] = value.lower() if name in _CASELESS else value
            qualified[f"{prefix}:{local}"] = value
        return found | qualified


def _version(prefix: str | None, uri: str) -> str:
    if uri == "http://purl.org/rss/1.0/" or (prefix is None and uri == "http://my.netscape.com/rdf/simple/0.9/"):
        return "rss"
    return "atom10" if uri == "http://www.w3.org/2005/atom" else ""
