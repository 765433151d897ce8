"""A document as a tree, with feedparser's names for its elements and attributes.

expat builds it, which is also the parser beneath feedparser: both agree on what is well-formed. feedparser's rules for
namespaces are repeated here: it knows them by their URI with any prefix, and also by their usual prefix with any URI;
an unknown default namespace counts as none; declarations hold beyond the end of their element.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.formats.lenient.bounded_feedparser import MAX_KINDS, MAX_NAMESPACE_CHARS
from services.fetcher.parse.model import Deadline, Declined, check_time

MAX_DEPTH = 100
MAX_TAGS = 800_000
"""`<` and `=` of 50,000 entries with seven elements each. A larger tree is declined: it would take over 250 MB."""

_USERLAND = "http://backend.userland.com/rss"
_XLINK = "http://www.w3.org/1999/xlink"
_STANDARD: dict[str, str] = {uri.lower(): prefix for uri, prefix in _FeedParserMixin.namespaces.items()}
_USUAL = frozenset(_STANDARD.values()) - {""}
_ASKED_FOR = frozenset({"rdf", "xhtml"})
"""Prefixes that the tables of the strict tier use."""
_CASELESS = frozenset({"rel", "type"})
_PLAIN_NAMES = frozenset({"url", "href", "length", "width", "height", "medium", "term", "scheme", "label", "text"})
"""The most frequent names of attributes, which are lower-case already."""

Attributes = dict[str, str]


class Tree:
    """The root element, the names of its elements, and the version that tells Atom from RSS.

    Comments and processing instructions are left out; the text around them is joined. expat calls the compiled builder
    directly, without Python code between them: that halves the cost of a tree.
    """

    def __init__(self, source: str, deadline: Deadline | None = None) -> None:
        self.version = ""
        self._prefixes: dict[str, str | None] = {}
        """The prefixes of unknown namespaces, by URI."""
        self._mapped: dict[str, str] = {}
        """The usual prefixes of known namespaces, by the prefixes in the document."""
        self.names = _Names(self._prefixes, self._mapped)
        """feedparser's name (`title`, `dc_date`, `foo_bar`) by the tag of an element."""
        self._meanings: dict[str, str] = {}
        self._declared: Attributes = {}
        """Attributes that are added to the next element's own."""
        self._is_open = False
        self._unusual: set[str] = set()
        """Declarations of namespaces that change names in the whole document."""
        self._depends_on_order = False
        check_time(deadline)
        if len(source) > MAX_TAGS and source.count("<") + source.count("=") > MAX_TAGS:
            raise Declined("more elements than any feed needs")
        parser = self._parser = expat.ParserCreate(None, " ")
        builder = self._builder = TreeBuilder()
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.buffer_size = max(len(source), 1024)
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartElementHandler = self._start_root
        parser.EndElementHandler = builder.end
        parser.CharacterDataHandler = builder.data
        try:
            parser.Parse(source, True)
        except expat.ExpatError as error:
            raise Declined("not well-formed") from error
        finally:
            del self._parser  # it holds handlers that hold it
        check_time(deadline)
        self.root: Element = builder.close()

    def scope(self) -> str | None:
        """Return all declarations by which an element may change the names of others; None if their order counts."""
        if self._depends_on_order or len(self._meanings) + len(self._prefixes) > MAX_KINDS - len(_STANDARD):
            return None
        return " ".join(sorted(self._unusual))

    def _start_root(self, tag: str, given: Attributes) -> None:
        self._is_open = True
        self._builder.start(tag, given)
        self._parser.StartElementHandler = self._builder.start

    def _declare(self, prefix: str | None, uri: str | None) -> None:
        if not uri:
            return
        is_long = len(uri) > MAX_NAMESPACE_CHARS or len(self._meanings) + len(self._prefixes) > MAX_KINDS
        if is_long or uri.split() != [uri]:
            raise Declined("white space in a namespace, a very long one, or very many")
        if uri == _XLINK and prefix and self._is_open:
            self._declare_attribute(f"xmlns:{prefix}".lower(), uri)
        lower = uri.lower()
        if not self.version and not self._is_open:
            self.version = _version(prefix, lower)
        if _USERLAND[7:] in lower:
            uri = lower = _USERLAND
        standard = _STANDARD.get(lower)
        self._note(prefix, uri, standard)
        if not prefix:
            return
        meaning = standard if standard is not None else uri
        # Names are computed when all is read. So a prefix must mean the same in the whole document, in capitals too.
        # A prefix that replaces a usual one must do so from the root element on.
        is_late = self._is_open and self._mapped.get(prefix) != standard
        if self._meanings.setdefault(prefix.lower(), meaning) != meaning or (
            prefix in _USUAL and standard not in {None, prefix} and (is_late or prefix in _ASKED_FOR)
        ):
            raise Declined("a prefix with several meanings")
        if standard is not None:
            self._mapped[prefix] = standard

    def _note(self, prefix: str | None, uri: str, standard: str | None) -> None:
        if prefix != standard and (prefix or standard is None):
            self._unusual.add(f"{prefix or ''}={uri}")
        if standard is None:
            self._add_prefix(uri, prefix)

    def _add_prefix(self, uri: str, prefix: str | None) -> None:
        """Name all elements of an unknown namespace by its first prefix, as feedparser does."""
        known = self._prefixes.setdefault(uri, prefix)
        if known == prefix:
            return
        if (self._is_open and not known) or prefix in _USUAL:
            raise Declined("a namespace with several prefixes")
        self._depends_on_order |= self._is_open
        self._prefixes[uri] = known or prefix

    def _declare_attribute(self, name: str, value: str) -> None:
        """Add an attribute to the next element."""
        self._declared[name] = value

        def start_next(tag: str, given: Attributes) -> None:
            self._parser.StartElementHandler = self._builder.start
            self._builder.start(tag, self._declared | given)
            self._declared = {}

        self._parser.StartElementHandler = start_next


class _Names(dict[str, str]):
    """feedparser's name for each tag; computed once for each."""

    def __init__(self, prefixes: dict[str, str | None], mapped: dict[str, str]) -> None:
        super().__init__()
        self._prefixes, self._mapped = prefixes, mapped

    def __missing__(self, tag: str) -> str:
        uri, local = tag.split(" ")[:2] if " " in tag else ("", tag)  # a third part is the prefix in the document
        local, prefix = local.lower(), ""
        if uri:
            lower = uri.lower()
            prefix = _STANDARD.get(_USERLAND if _USERLAND[7:] in lower else lower, "")
            prefix = (prefix or self._prefixes.get(uri) or "").lower()
            prefix = self._mapped.get(prefix, prefix)
        found = self[tag] = f"{prefix}_{local}" if prefix else local
        return found


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return (element.tag.split(" ")[1] if " " in element.tag else element.tag).lower()


def attributes_of(element: Element) -> Attributes:
    """Return the attributes of an element by feedparser's names, in a new dictionary."""
    return named(element.items())


def named(given: Iterable[tuple[str, str]]) -> Attributes:
    """Return attributes by feedparser's names, in a new dictionary."""
    found: Attributes = {}
    for key, value in given:
        if key in _PLAIN_NAMES:
            found[key] = value
            continue
        if " " in key:
            return _namespaced(given)
        name = key.lower()
        found[name] = value.lower() if name in _CASELESS else value
    return found


def _namespaced(given: Iterable[tuple[str, str]]) -> Attributes:
    """Return attributes by feedparser's names; one with a prefix has two names."""
    found: Attributes = {}
    qualified: Attributes = {}
    for key, value in given:
        if " " not in key:
            name = key.lower()
            found[name] = qualified[name] = value.lower() if name in _CASELESS else value
            continue
        uri, local, prefix = key.split(" ")
        standard = _STANDARD.get(uri.lower(), "")
        # An attribute of an unknown namespace also counts as one without a namespace.
        name = f"{standard}:{local}".lower() if standard else local.lower()
        found[name] = value.lower() if name in _CASELESS else value
        qualified[f"{prefix}:{local}".lower()] = value
    return found | qualified


def _version(prefix: str | None, uri: str) -> str:
    if uri == "http://purl.org/rss/1.0/" or (prefix is None and uri == "http://my.netscape.com/rdf/simple/0.9/"):
        return "rss"
    return "atom10" if uri == "http://www.w3.org/2005/atom" else ""
