"""A document as a tree, with the names that feedparser has for its elements and attributes.

Built by expat, which is also the parser beneath feedparser: what is well-formed for one is for the other. feedparser
knows namespaces by their URI, whatever the prefix, and also by their usual prefix, whatever the URI; an unknown default
namespace counts as none; declarations stay in force after their element has ended. All of this is told again here.
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.model import Deadline, Declined, check_time

MAX_DEPTH = 100
MAX_TAGS = 750_000
"""`<` of 50,000 entries with seven elements each. A larger tree is declined: it would take over 200 MB."""

_USERLAND = "http://backend.userland.com/rss"
_XLINK = "http://www.w3.org/1999/xlink"
_STANDARD: dict[str, str] = {uri.lower(): prefix for uri, prefix in _FeedParserMixin.namespaces.items()}
_USUAL = frozenset(_STANDARD.values()) - {""}
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

    def __init__(self, source: str, deadline: Deadline | None = None) -> None:
        self.version = ""
        self._prefixes: dict[str, str | None] = {}
        """Of unknown namespaces."""
        self._mapped: dict[str, str] = {}
        """Prefixes of known namespaces to their usual ones."""
        self._meanings: dict[str, str] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._declared: Attributes = {}
        self._open = [Node("", "", {})]
        check_time(deadline)
        if source.count("<") > MAX_TAGS:
            raise Declined("more elements than any feed needs")
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
        check_time(deadline)
        self.root = self._open[0].children[0]

    def _start(self, tag: str, given: Attributes) -> None:
        opened = self._open
        if len(opened) > MAX_DEPTH:
            raise Declined("elements that are nested too deep")
        name, local = self._names.get(tag) or self._name(tag)
        node = Node(name, local, self._attributes(given) if given or self._declared else {})
        opened[-1].children.append(node)
        opened.append(node)

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
        if not self.version and not self._open[0].children:
            self.version = _version(prefix, lower)
        if _USERLAND[7:] in lower:
            uri = lower = _USERLAND
        standard = _STANDARD.get(lower)
        if standard is None and self._prefixes.setdefault(uri, prefix) != prefix:
            raise Declined("a namespace with several prefixes")
        if not prefix:
            return
        if standard is not None:
            self._mapped[prefix] = standard
        meaning = standard if standard is not None else uri
        if self._meanings.setdefault(prefix, meaning) != meaning or (
            prefix in _USUAL and standard not in {None, prefix}
        ):
            raise Declined("a prefix with several meanings")

    def _name(self, tag: str) -> tuple[str, str]:
        uri, local = tag.split(" ")[:2] if " " in tag else ("", tag)  # and the given prefix, if there is one
        local, prefix = local.lower(), ""
        if uri:
            lower = uri.lower()
            prefix = _STANDARD.get(_USERLAND if _USERLAND[7:] in lower else lower, "")
            prefix = (prefix or self._prefixes.get(uri) or "").lower()
            prefix = self._mapped.get(prefix, prefix)
        found = self._names[tag] = f"{prefix}_{local}" if prefix else local, local
        return found

    def _attributes(self, given: Attributes) -> Attributes:
        found, self._declared = self._declared, {}
        for key, value in given.items():
            if " " in key:
                return found | _namespaced(given)
            name = key.lower()
            found[name] = value.lower() if name in _CASELESS else value
        return found


def _namespaced(given: Attributes) -> Attributes:
    """Return attributes by the names that feedparser has for them; one with a prefix has two."""
    found: Attributes = {}
    qualified: Attributes = {}
    for key, value in given.items():
        if " " not in key:
            name = key.lower()
            found[name] = qualified[name] = value.lower() if name in _CASELESS else value
            continue
        uri, local, prefix = key.split(" ")
        standard = _STANDARD.get(uri.lower(), "")
        # An attribute of an unknown namespace stands in for one of none.
        name = f"{standard}:{local}".lower() if standard else local.lower()
        found[name] = value.lower() if name in _CASELESS else value
        qualified[f"{prefix}:{local}".lower()] = value
    return found | qualified


def _version(prefix: str | None, uri: str) -> str:
    if uri == "http://purl.org/rss/1.0/" or (prefix is None and uri == "http://my.netscape.com/rdf/simple/0.9/"):
        return "rss"
    return "atom10" if uri == "http://www.w3.org/2005/atom" else ""
