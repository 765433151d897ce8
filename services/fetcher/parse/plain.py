"""Entries as most are: each element once, with nothing odd about it. Read straight to `RawEntry`.

What `Elements` and `fields` make of such an entry is told here once more, shorter, at two fifths of the cost. An
element that is not listed here, or stands there twice, makes the answer None: then they read the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from services.fetcher.parse.authors import MAX_AUTHOR_CHARS
from services.fetcher.parse.elements import (
    HTML_KINDS,
    KINDS,
    SCOPE,
    Elements,
    Handler,
    enforce_href,
    is_meaningless,
    without_references,
)
from services.fetcher.parse.fields import PUBLISHED, SHORTER_TEXTS, TITLES, UPDATED, first_date
from services.fetcher.parse.guarded import MAX_TAGS
from services.fetcher.parse.inline import looks_like_html, repaired
from services.fetcher.parse.links import has_other_scheme, is_alternate
from services.fetcher.parse.model import RawEnclosure, RawEntry, Text
from services.fetcher.parse.people import DETAILS
from services.fetcher.parse.tree import Attributes, attributes_of

_PLAIN, _HTML, _VALUE, _TAG, _IGNORED, _ODD = "text/plain", "text/html", "value", "tag", "ignored", "odd"
_MEANINGS = {
    **{name: (name, _PLAIN) for name in TITLES},
    "description": ("summary", _HTML),
    "summary": ("summary", _PLAIN),
    "content": ("content", _PLAIN),
    "content_encoded": ("content", _HTML),
    "itunes_summary": ("itunes_summary", _PLAIN),
    "media_description": ("media_description", _PLAIN),
    "dc_description": ("dc_description", _HTML),
    "itunes_subtitle": ("subtitle", _PLAIN),
    **{name: (name, _VALUE) for name in ("link", "enclosure", "media_content")},
    "category": ("category", _TAG),
    **dict.fromkeys(["guid", "id"], ("id", _VALUE)),
    **{name: (name, _VALUE) for name in (*PUBLISHED, *UPDATED)},
    **dict.fromkeys(["issued", "pubdate"], ("published", _VALUE)),
    "modified": ("updated", _VALUE),
    **dict.fromkeys(["author", "dc_creator", "itunes_author"], ("author", _VALUE)),
    # These make a difference by what stands within, and the last two to a title that follows.
    **dict.fromkeys(["rights", "copyright", "dc_rights", "contributor"], ("", _IGNORED)),
    **dict.fromkeys(["source", "image"], ("source", _IGNORED)),
}
_OTHER_TEXTS = SHORTER_TEXTS[1:]
_OTHER_TITLES = TITLES[1:]
_DECLARED = frozenset({"text", "html", _PLAIN, _HTML})
"""Media types that a text may say it is of."""
_PERMALINK = ["isPermaLink"]
_FILES = ("enclosure", "media_content")
_WITH_LANGUAGE = (*TITLES, "summary", "content")
_NO_TITLE = Text("", is_html=True)


class PlainEntries:
    """Reads the plain entries of one feed, as long as no `xml:base` is in force."""

    def __init__(self, names: Mapping[str, str], table: Mapping[str, Handler], *, is_atom: bool) -> None:
        self._names = names
        self._meanings = _Meanings(names, table)
        self._is_atom = is_atom
        self.is_titled = False
        """Whether the last entry's title keeps others from its place, as `Elements.title_depth` does."""

    def read(self, entry: Element, about: str, language: str) -> RawEntry | None:
        """Return the entry, or None if it is not plain. `about` is its id if it has no other."""
        values: dict[str, str] = {}
        texts: dict[str, Text] = {}
        more = _More()
        is_titled, meanings = False, self._meanings
        for child in entry:
            key, kind = meanings[child.tag]
            given = child.keys()
            if given == _PERMALINK and key == "id" and not len(child):  # by far the most that has attributes
                more.guid_is_link = _is_permalink(child.attrib["isPermaLink"])
            elif given or len(child):
                kind = self._kind(child, key, kind, more)
            if kind == _IGNORED:
                is_titled = is_titled and key != "source"
                continue
            if kind == _ODD or key in values or key in texts:
                return None
            text = child.text
            text = text.strip() if text else ""
            if kind == _PLAIN and not self._is_atom and looks_like_html(text):
                kind = _HTML
            if not text.isascii():
                text = repaired(text)
            if kind == _VALUE:
                values[key] = text
            elif kind == _TAG:
                more.add_tag(text)
            else:
                texts[key] = Text(text, kind == _HTML)
                is_titled = is_titled or (key == "title" and text != "")
        self.is_titled = is_titled
        return _raw_entry(values, texts, more, about, language)

    def _kind(self, child: Element, key: str, kind: str, more: _More) -> str:
        """Return of what kind an element is that has attributes or others within; `_IGNORED` if it is dealt with."""
        if kind == _ODD:
            return _ODD
        attributes = attributes_of(child)
        if not SCOPE.isdisjoint(attributes):
            return _ODD
        if len(child):
            return _IGNORED if key == "author" and more.take_person(child, self._names) else _ODD
        if kind == _VALUE:
            return more.take(key, attributes)
        if kind == _TAG:
            return more.take_tag(child, attributes)
        if kind != _IGNORED and "type" in attributes:
            declared = attributes["type"]
            kind = KINDS.get(declared, declared) if declared in _DECLARED else _ODD
        return _ODD if "mode" in attributes else kind


class _More:
    """What elements say of an entry beside their texts, each of which counts once."""

    __slots__ = ("_has_media", "files", "guid_is_link", "href", "person", "tags")

    def __init__(self) -> None:
        self.tags: dict[tuple[str, str | None, str | None], None] = {}
        self.files: list[RawEnclosure] = []
        self.guid_is_link = True
        self.href = ""
        self.person: str | None = None
        self._has_media = False

    def add_tag(self, term: str, scheme: str | None = None, label: str | None = None) -> None:
        """Add a category."""
        if term and len(self.tags) < MAX_TAGS:
            self.tags[term, scheme, label] = None

    def take_tag(self, element: Element, attributes: Attributes) -> str:
        """Take the category that the attributes name."""
        term = attributes.get("term")
        if not term or (element.text or "").strip():
            return _ODD
        self.add_tag(term, attributes.get("scheme", attributes.get("domain")), attributes.get("label"))
        return _IGNORED

    def take(self, key: str, attributes: Attributes) -> str:
        """Take what the attributes say; return of what kind the element's text is."""
        if key == "id":
            self.guid_is_link = _is_permalink(attributes.get("ispermalink", "true"))
        elif key == "link":
            return self._take_link(attributes)
        elif key == "enclosure":
            enforce_href(attributes)
            return self._take_file(attributes, "href", "length")
        elif key == "media_content":
            self._has_media = True
            return self._take_file(attributes, "url", "filesize")
        return _VALUE

    def take_person(self, element: Element, names: Mapping[str, str]) -> bool:
        """Take a person's name, if there is no doubt which it is."""
        text, name = element.text or "", ""
        for child in element:
            key = DETAILS.get(names[child.tag])
            if not key or child.keys() or len(child) or (key == "name" and name):
                return False
            if key == "name":
                name = (child.text or "").strip()
            text += child.tail or ""
        is_first, self.person = self.person is None, name
        return is_first and name != "" and not text.strip()

    def _take_link(self, attributes: Attributes) -> str:
        enforce_href(attributes)
        href, relation = attributes.get("href"), attributes.get("rel", "alternate")
        if not href or ":///" in href or has_other_scheme(href):
            return _ODD
        if relation == "enclosure":
            return self._take_file({"type": "text/html"} | attributes, "href", "length")
        if relation == "alternate":
            if self.href or KINDS.get(kind := attributes.get("type", _HTML), kind) not in HTML_KINDS:
                return _ODD
            self.href = href
            return _IGNORED
        return _ODD if is_alternate(relation) else _IGNORED

    def _take_file(self, attributes: Attributes, address: str, length: str) -> str:
        if self._has_media and address == "href":  # which goes first, wherever it stands
            return _ODD
        if url := attributes.get(address):
            self.files.append(RawEnclosure(url, attributes.get("type", ""), attributes.get(length, "")))
        return _IGNORED


def _is_permalink(value: str) -> bool:
    return value.strip().lower() != "false"


def _raw_entry(
    values: dict[str, str], texts: dict[str, Text], more: _More, about: str, language: str
) -> RawEntry | None:
    get = values.get
    link, author = get("link", ""), get("author", "")[:MAX_AUTHOR_CHARS]
    if "&" in link:
        link = without_references(link)
    if ":///" in link or has_other_scheme(link):
        return None
    link = link or more.href
    if more.person is not None:
        if "author" in values:
            return None
        author = more.person[:MAX_AUTHOR_CHARS]
    if not values.keys().isdisjoint(_FILES):
        return None
    title = texts.get("title")
    if not (title and title.value) and not texts.keys().isdisjoint(_OTHER_TITLES):
        title = next((texts[name] for name in _OTHER_TITLES if name in texts and texts[name].value), title)
    bodies = []
    if content := texts.get("content"):
        bodies = [content, texts.get("summary") or Text(content.value, is_html=True)]
    elif summary := texts.get("summary"):
        bodies = [summary]
    if not texts.keys().isdisjoint(_OTHER_TEXTS):
        bodies += [texts[key] for key in _OTHER_TEXTS if key in texts]
    return RawEntry(
        get("id", about),
        more.guid_is_link,
        link,
        title or _NO_TITLE,
        tuple(bodies),
        first_date(values, PUBLISHED),
        first_date(values, UPDATED),
        (author,) if author else (),
        tuple([term for term, _, _ in more.tags]) if more.tags else (),
        tuple(more.files),
        "" if texts.keys().isdisjoint(_WITH_LANGUAGE) else language,
    )


class _Meanings(dict[str, tuple[str, str]]):
    """What each tag means within an entry, and of what kind it is; looked up once for each."""

    def __init__(self, names: Mapping[str, str], table: Mapping[str, Handler]) -> None:
        super().__init__()
        self._names, self._table = names, table

    def __missing__(self, tag: str) -> tuple[str, str]:
        name = self._names[tag]
        handler = self._table.get(name)
        is_ignored = is_meaningless(name) if handler is None else handler is Elements.ignored
        found = self[tag] = _MEANINGS.get(name) or ("", _IGNORED if is_ignored else _ODD)
        return found
