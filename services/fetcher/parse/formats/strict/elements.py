"""The elements of an entry, and the fields that the strict tier makes of them.

Each method reads one element into `fields` as feedparser does: which of several titles counts, that a second
description is a full text, how long a base holds. An element with another meaning for feedparser is declined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from xml.etree.ElementTree import Element

from feedparser.urls import _urljoin, make_safe_absolute_uri

from services.fetcher.parse.fields import Fields, is_html, is_text
from services.fetcher.parse.formats.lenient.bounded_feedparser import MAX_SCOPE_CHARS
from services.fetcher.parse.formats.lenient.guarded_feedparser import APART, MAX_TAGS, TITLES
from services.fetcher.parse.formats.strict.hrefs import enforce_href, resolve, without_references
from services.fetcher.parse.formats.strict.inline import (
    XHTML,
    MarkupWriter,
    decoded_base64,
    inline,
    leaf_text,
    looks_like_html,
    plain_text,
    repaired,
)
from services.fetcher.parse.formats.strict.tree import MAX_DEPTH, Attributes, named
from services.fetcher.parse.model import Declined, Text
from services.fetcher.parse.text.links import MAX_BASE_CHARS, without_other_schemes

Handler = Callable[[Any, Element, Attributes, int], object]
"""Reads one element: the reader, the element, its attributes by feedparser's names, its depth in the document."""

KINDS = {"text": "text/plain", "plain": "text/plain", "html": "text/html", "xhtml": XHTML}
_XML_KINDS = ("+xml", "/xml")
_COPIED_KINDS = frozenset({"text/plain", "text/html", XHTML})
MAX_KEYWORDS = 10 * MAX_TAGS
"""So many terms of one list are read; some of them may be repeated."""

SCOPE = frozenset({"xml:base", "base", "xml:lang", "lang"})
"""Attributes that also hold for the elements within; feedparser takes them without the prefix as well."""


class Elements:
    """The fields read so far. Depth counts from the root element, whose depth is 1."""

    def __init__(self, names: Mapping[str, str], version: str) -> None:
        self.names = names
        """feedparser's name for each tag."""
        self.is_atom = version.startswith("atom")
        self.is_atom10 = version == "atom10"
        self.table: Mapping[str, Handler] = {}
        """The handler of each tag."""
        self.fields: Fields = {}
        self.depths: dict[str, int] | None = None
        """Within an entry: the depth of each field's element. A deeper element never replaces the field."""
        self.title_depth = -1
        self.has_content = False
        self.base = ""
        self.outer_base = ""
        """The parent's base. If it is "", an element's own base holds beyond its end, as in feedparser."""
        self.language: str | None = None

    # The walk

    def read_children(self, element: Element, depth: int) -> None:
        """Read the elements within `element`, whose depth is `depth`."""
        outer, language = self.outer_base, self.language
        self.outer_base = self.base
        table = self.table
        if depth >= MAX_DEPTH:
            raise Declined("elements that are nested too deep")
        depth += 1
        meaningless = Elements.meaningless
        for child in element:
            handler, given = table[child.tag], child.items()
            if not given:
                if handler is not meaningless or len(child):
                    handler(self, child, {}, depth)
                continue
            attributes = named(given)
            scoped = not SCOPE.isdisjoint(attributes)
            if scoped:
                self.enter(attributes)
            handler(self, child, attributes, depth)
            if scoped:
                self.language = language
                self.base = self.outer_base or self.base
        self.outer_base = outer
        self.base = outer or self.base

    def enter(self, attributes: Attributes) -> None:
        """Set the base and the language that an element declares."""
        base = attributes.get("xml:base", attributes.get("base"))
        if base:
            if len(base) > MAX_BASE_CHARS:
                raise Declined("a long xml:base")
            joined = make_safe_absolute_uri(self.base, base) or self.base if self.base else _urljoin("", base)
            # feedparser joins the base with itself at each element within.
            if len(joined) > MAX_BASE_CHARS or (make_safe_absolute_uri(joined, joined) or joined) != joined:
                raise Declined("an odd xml:base")
            self.base = joined
        language = attributes.get("xml:lang", attributes.get("lang"))
        if language is not None:
            if len(language) > MAX_SCOPE_CHARS["lang"]:
                raise Declined("a long language")
            self.language = language.replace("_", "-") or None

    def meaningless(self, element: Element, _attributes: Attributes, depth: int) -> None:
        """Pass over an element without a meaning, but read the elements within."""
        if len(element):
            self.read_children(element, depth)

    def unexpected(self, element: Element, _attributes: Attributes, _depth: int) -> None:
        """Decline."""
        raise Declined(f"<{self.names[element.tag]}> where it is not expected")

    def transparent(self, element: Element, _attributes: Attributes, depth: int) -> None:
        """Read the elements within."""
        self.read_children(element, depth)

    def ignored(self, element: Element, _attributes: Attributes, _depth: int) -> None:
        """Pass over an element; decline if it has others within."""
        if len(element):
            raise Declined("elements within a text")

    def store(self, key: str, value: object, depth: int) -> bool:
        """Set a field, unless an element of less depth in the entry has set it; return whether it is set."""
        if self.depths is not None:
            if depth > self.depths.get(key, depth):
                return False
            self.depths[key] = depth
        self.fields[key] = value
        return True

    # Texts

    def text(self, element: Element, attributes: Attributes, depth: int, key: str, default: str) -> tuple[str, str]:
        """Read a text into the field `key`; return it, and its declared media type (without one: `default`)."""
        kind = default
        if attributes or len(element) or kind == XHTML:
            value, kind = self._value(element, attributes, key, default)
        else:
            value = (element.text or "").strip()
        known = kind
        if kind == "text/plain" and not self.is_atom and looks_like_html(value):
            kind = "text/html"
        if not value.isascii():
            value = repaired(value)
        if key == "content":
            if is_text(kind):
                self.fields.setdefault("content", []).append(Text(value, is_html(kind), self.base))
            if self.language:
                self.fields.setdefault("languages", {}).setdefault("content", self.language)
        elif not (key == "title" and -1 < self.title_depth <= depth) and not (
            key in APART and self._keeps(key, value, depth)
        ):
            self._store_text(key, Text(value, is_html(kind), self.base), depth)
        return value, known

    def _value(self, element: Element, attributes: Attributes, key: str, default: str) -> tuple[str, str]:
        """Return a text with attributes or elements within, and its media type."""
        kind = attributes.get("type", default).lower()
        kind = KINDS.get(kind, kind)
        is_markup = kind.startswith("text/") or kind.endswith(_XML_KINDS)
        is_base64 = attributes and (not is_markup or attributes.get("mode") == "base64")
        if len(element) or kind == XHTML:
            writer = MarkupWriter(self.names, key, has_base=self.base != "")
            value, kind = inline(element, kind, writer, is_atom10=self.is_atom10)
        else:
            value = (element.text or "").strip()
        return decoded_base64(element, value) if is_base64 else value, kind

    def _store_text(self, key: str, text: Text, depth: int) -> None:
        if not self.store(key, text, depth):  # in feedparser only the value stays
            self.fields[key] = text._replace(value=self.fields[key].value)
        if self.language:
            self.fields.setdefault("languages", {})[key] = self.language
        elif "languages" in self.fields:
            self.fields["languages"].pop(key, None)

    def title(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read a title: the first that is not empty counts."""
        value, _ = self.text(element, attributes, depth, "title", "text/plain")
        if value:
            self.title_depth = depth

    def _keeps(self, key: str, value: str, depth: int) -> bool:
        """Return whether a field of another vocabulary keeps its value (by the rule of `guarded_feedparser`)."""
        if key not in self.fields or not self.fields[key].value:
            return False
        return not value or (key in TITLES and (self.depths is None or self.depths.get(key, -1) <= depth))

    def full_text(self, element: Element, attributes: Attributes, depth: int, default: str = XHTML) -> None:
        """Read a full text; it is also the summary as long as there is none."""
        value, kind = self.text(element, attributes, depth, "content", default)
        if kind in _COPIED_KINDS:
            self.fields.setdefault("summary", Text(value, is_html=True))

    def content(self, element: Element, attributes: Attributes, depth: int, default: str = "text/plain") -> None:
        """Read Atom's <content> or RSS's <content:encoded>: a full text."""
        self.has_content = True
        self.full_text(element, attributes, depth, default)

    def summary(self, element: Element, attributes: Attributes, depth: int, default: str = "text/plain") -> None:
        """Read Atom's <summary> or RSS's <description>: a second one is a full text."""
        if "summary" in self.fields and not self.has_content:
            self.content(element, attributes, depth)
        else:
            self.text(element, attributes, depth, "summary", default)

    # Links

    def link(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read a link: Atom's, with its address as an attribute, or RSS's, with its address as text."""
        if attributes:
            attributes.setdefault("rel", "alternate")
            attributes.setdefault("type", "application/atom+xml" if attributes["rel"] == "self" else "text/html")
            enforce_href(without_other_schemes(attributes))
        else:
            attributes = {"rel": "alternate", "type": "text/html"}
        self.fields.setdefault("links", []).append(attributes)
        if "href" in attributes:
            if len(element):
                raise Declined("elements within a link")
            attributes["href"] = resolve(self.base, attributes["href"])
            return
        href = leaf_text(element)
        href = repaired(resolve(self.base, href)) if href else ""
        if "&" in href:
            href = without_references(href.replace("&amp;", "&") if self.depths is not None else href)
        if href:
            self.fields["links"][-1] = {**attributes, "href": href, "is_text": True}

    def guid(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read the entry's id."""
        is_link = not attributes or attributes.get("ispermalink", "true").strip().lower() != "false"
        self.fields.setdefault("guid_is_link", is_link)
        self.store("id", plain_text(element), depth)

    def enclosure(self, element: Element, attributes: Attributes, _depth: int) -> None:
        """Read an enclosure."""
        leaf_text(element)
        enforce_href(attributes)
        attributes["rel"] = "enclosure"
        self.fields.setdefault("links", []).append(attributes)

    def media_content(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read <media:content> and the elements within."""
        self.fields.setdefault("media_content", []).append(attributes)
        if len(element):
            self.read_children(element, depth)

    # Plain texts, categories

    def language_of(self, element: Element, _attributes: Attributes, depth: int) -> None:
        """Read <language>."""
        self.store("language", plain_text(element), depth)

    def plain(self, element: Element, depth: int, key: str) -> None:
        """Read a plain text, for example a date, into the field `key`; an empty one replaces no other."""
        value = plain_text(element)
        if value or not self.fields.get(key):
            self.store(key, value, depth)

    def category(self, element: Element, attributes: Attributes, _depth: int) -> None:
        """Read a category: attributes, or a text."""
        if attributes:
            scheme = attributes.get("scheme", attributes.get("domain"))
            self.tag(attributes.get("term"), scheme, attributes.get("label"))
        value = plain_text(element)
        if not value:
            return
        tags = self.fields.setdefault("tags", [])
        if tags and not tags[-1]["term"]:
            tags[-1]["term"] = value
        else:
            self.tag(value, None, None)

    def tag(self, term: str | None, scheme: str | None, label: str | None) -> None:
        """Add a category, once."""
        tags = self.fields.setdefault("tags", [])
        value = {"term": term, "scheme": scheme, "label": label}
        if (term or scheme or label) and len(tags) < MAX_TAGS and value not in tags:
            tags.append(value)

    def keywords(self, element: Element, attributes: Attributes, _depth: int, *, scheme: str | None) -> None:
        """Read a list of categories with commas between."""
        text = plain_text(element)
        if not attributes:
            for term in filter(None, map(str.strip, text.split(",", MAX_KEYWORDS)[:MAX_KEYWORDS])):
                self.tag(term, scheme, None)
