"""What the elements and attributes of a document are called: as feedparser calls them, so that tiers agree.

feedparser knows namespaces by their URI, whatever the prefix, and also by their usual prefix, whatever the URI; an
unknown default namespace counts as none. Where its answer hangs on the order of declarations, this module declines.
"""

from __future__ import annotations

import re
from typing import Any

from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.model import Declined

_CASELESS = frozenset({"rel", "type"})
_USERLAND = "backend.userland.com/rss"
_XLINK = "http://www.w3.org/1999/xlink"
_STANDARD: dict[str, str] = {uri.lower(): name.lower() for uri, name in _FeedParserMixin.namespaces.items()}
_STANDARD_NAMES = frozenset(_STANDARD.values()) - {""}
# Also what only looks like a declaration, within CDATA: too many cost speed, never the answer.
_DECLARATION = re.compile(r"xmlns(?::([^\s=:]+))?\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class Names(dict[str, str]):
    """Maps each tag of lxml (`{uri}local`) to feedparser's name for it: `title`, `dc_date`, `foo_bar`."""

    def __init__(self, source: str, root: Any) -> None:
        super().__init__()
        self._prefixes: dict[str, set[str]] = {}
        self._mapped: dict[str, str] = {}
        declared: dict[str, str] = {}
        for prefix, double, single in set(_DECLARATION.findall(source)):
            uri = double or single
            if not uri:
                continue
            if "&" in uri or uri.split() != [uri] or (prefix and declared.setdefault(prefix, uri) != uri):
                raise Declined("namespaces that change")
            self._prefixes.setdefault(uri, set()).add(prefix)
            standard = _standard(uri)
            if prefix and standard is not None:
                self._mapped[prefix] = standard
        if any(name in _STANDARD_NAMES and name != standard for name, standard in self._mapped.items()):
            raise Declined("a usual prefix for another namespace")
        if _XLINK in self._prefixes and (_XLINK not in root.nsmap.values() or source.count(_XLINK) > 1):
            raise Declined("xlink")

    def __missing__(self, tag: str) -> str:
        if not tag.isascii():
            raise Declined("an element whose name is not ASCII")
        uri, _, local = tag.rpartition("}")
        prefix = self._prefix(uri[1:]) if uri else ""
        name = self[tag] = f"{prefix}_{local.lower()}" if prefix else local.lower()
        return name

    def _prefix(self, uri: str) -> str:
        standard = _standard(uri)
        if standard is None:
            standard = self._given_prefix(uri).lower()
        return self._mapped.get(standard, standard)

    def _given_prefix(self, uri: str) -> str:
        prefixes = self._prefixes.get(uri, ())
        if len(prefixes) != 1:
            raise Declined("a namespace with several prefixes")
        return next(iter(prefixes))

    def attributes(self, element: Any) -> dict[str, str]:
        """Return the element's attributes by feedparser's names; the dict is the caller's own."""
        found: dict[str, str] = {}
        qualified: dict[str, str] = {}
        for key, value in element.items():
            uri, _, local = key.lower().rpartition("}")
            settled = value.lower() if local in _CASELESS and not uri else value
            if not uri:
                found[local] = qualified[local] = settled
                continue
            standard = _standard(uri[1:])
            # As feedparser does, an attribute of an unknown namespace stands in for one of none.
            name = f"{standard}:{local}" if standard else local
            found[name] = value.lower() if name in _CASELESS else value
            given = "xml" if standard == "xml" else self._given_prefix(key[1:].partition("}")[0]).lower()
            qualified[f"{given}:{local}"] = value
        if len(found) > len(qualified) or found != qualified:
            found.update(qualified)
        return found


def _standard(uri: str) -> str | None:
    """Return the usual prefix of a namespace, "" for those of RSS and Atom themselves, None for an unknown one."""
    uri = uri.lower()
    return "" if _USERLAND in uri else _STANDARD.get(uri)


def version(root_name: str, root: Any) -> str:
    """Return the version by which feedparser tells Atom from RSS: "rss…", "atom10", another "atom…", or ""."""
    if root_name == "rss":
        return "rss"
    for prefix, uri in root.nsmap.items():
        lower = uri.lower()
        if lower == "http://purl.org/rss/1.0/" or (
            prefix is None and lower == "http://my.netscape.com/rdf/simple/0.9/"
        ):
            return "rss"
        if lower == "http://www.w3.org/2005/atom":
            return "atom10"
    return "atom" if root_name == "feed" else ""
