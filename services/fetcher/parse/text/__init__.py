"""HTML to plain text, titles to one line, and how much of an article a text is.

Regular expressions that read the text once drop the tags, instead of a tree. HTML's rules for unclosed formatting let a
tree grow with the square of its source: 40 KB of `<p><b id=1><b id=2>…<p>x<p>x…` cost lexbor (selectolax 1.0.2) 8.4 s
and 2.3 GB, and 900 KB of attributes on one tag 25 s. Here time and memory are proportional to the length of the text.
It is also faster (19 µs for 2 KB, selectolax 37 µs).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

from services.fetcher.parse.document import cut_before
from services.fetcher.parse.model import Text

T = TypeVar("T")
Quality = Literal["full", "summary", "stub", "title_only"]

STUB_BELOW_CHARS = 140
"""A body shorter than this is a `stub`: a line, a caption, "Comments"."""

FULL_FROM_CHARS = 1000
"""A body from here on is `full`; between the two it is a `summary`."""

MAX_SOURCE_CHARS = 4_000_000
MAX_MARKUP = 300_000
"""A text is read up to so many tags and so many references. Each takes some hundred bytes meanwhile."""

_CUT_OFF = re.compile(r"(?:\.\.\.|…|\[…\]|\[\.\.\.\]|read more|continue reading)\W*$", re.IGNORECASE)

# script, style, svg, select, noscript, … grouped by their beginnings: few alternatives to try at each `<`.
_HIDDEN_OPEN = re.compile(
    r"<(s(?:cript|tyle|vg|elect)|no(?:script|embed|frames)|te(?:mplate|xtarea)|head|math|iframe|object|audio|video|canvas)"
    r"(?=[\s/>])",
    re.IGNORECASE,
)
_TO_THE_END = {"script", "style", "iframe", "noembed", "noframes", "textarea"}  # raw text in HTML, closed or not
_COMMENT = re.compile(r"<!--(?:-?>|.*?--!?>|.*)", re.DOTALL)
_PRE = re.compile(r"<[pP][rR][eE](?=[\s>])[^<]*+(?:<(?!/[pP][rR][eE])[^<]*+)*+")

# A tag ends at its first `>` outside a quoted value (HTML, section 13.2.5.38). Possessive: there is no way back.
_TAG = re.compile(
    r"<(/?[a-zA-Z][^\s/>]*+)[^>\"'=]*+"
    r"(?:=\"[^\"]*+\"[^>\"'=]*+|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+[^>\"'=]*+|[\"'][^>\"'=]*+)*+>"
    r"|<[!?/][^>]*>"
)
_UNENDED_TAG = re.compile(r"<[a-zA-Z!?/].*", re.DOTALL)
_BLOCKS = (
    "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol optgroup option p pre section "
    "summary table tbody tfoot thead title tr ul"
)
_INLINE = "a abbr b big cite code em font i img small span strong sub sup u"
_HIDDEN = (
    "script style svg select noscript noembed noframes template textarea head math iframe object audio video canvas"
)


class _Replacements(dict[str | None, str | None]):
    """The replacement of each tag; None for an element whose content is not shown as text."""

    def __missing__(self, name: str) -> str | None:
        lower = name.lower()
        return self.get(lower, "") if lower.isascii() else None


def _tags(names: str, instead: T) -> dict[str | None, T]:
    """Return one replacement for the start tags and end tags of these elements."""
    return dict.fromkeys([f"{slash}{name}" for name in names.split() for slash in ("", "/")], instead)


_SPACES = {None: "", **_tags(_INLINE, ""), **_tags(_BLOCKS, "\n"), **_tags("td th", " ")}
_INSTEAD = _Replacements({**_SPACES, **_tags(_HIDDEN, None)})
_COMMENTED = _Replacements({**_INSTEAD, None: None})
"""As above, and None also for comments and other declarations."""
_HEAD = {"head": "\n", "/head": "\n"}

_REFERENCE = re.compile(r"&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")  # as in Python's html


class _Characters(dict[str, str]):
    """The characters of each reference (without its `&`); the first 2,000 are remembered."""

    def __missing__(self, reference: str) -> str:
        found = html.unescape(f"&{reference}")
        if len(self) < _MAX_REMEMBERED:
            self[reference] = found
        return found


_MAX_REMEMBERED = 2_000
_CHARACTERS = _Characters()

_SHORT_CHARS = 200
"""Up to this length `isprintable` is the fastest test."""

_PRINTABLE = bytes([0x0A, *range(0x20, 0x7F)])

_BREAKS_IN_SOURCE = "\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""Line breaks, which are mere spaces in HTML."""

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


def html_to_text(source: str) -> str:
    """Return the text that a browser would show, with each block on a line of its own.

    Scripts, styles, comments and embedded objects are dropped, references decoded, white space collapsed.
    A source without any tag keeps its line breaks, since it is plain text labelled as HTML.
    """
    source = _within_bounds(source)
    if "<" not in source:
        return tidy(unescape(source))
    text = _drop_tags(_keep_preformatted(source), _COMMENTED)  # few texts have comments: looking for them costs more
    if text is None and "<!" in source:
        source = _drop_comments(source)
        text = _drop_tags(_keep_preformatted(source))
    if text is None:
        text = _drop_tags_one_by_one(_keep_preformatted(_drop_hidden(source)))
    return tidy(unescape(text))


def unescape(text: str) -> str:
    """Return the same as `html.unescape`, faster: known references are remembered."""
    if "&" not in text:
        return text
    pieces = _REFERENCE.split(text)  # text, reference, text, …
    pieces[1::2] = [*map(_CHARACTERS.__getitem__, pieces[1::2])]
    return "".join(pieces)


def _drop_tags(source: str, instead: Mapping[str | None, str | None] = _INSTEAD) -> str | None:
    """Return `source` without its tags, or None if it has nested hidden elements or broken tags (then the slow way)."""
    source = _without_breaks(source)
    end = source.rfind(">") + 1  # as in _drop_tags_one_by_one
    pieces = _TAG.split(source[:end])  # text, name of a tag, text, …
    names = pieces[1::2]
    if source.count("<") != len(names):
        return None
    replacements = [*map(instead.__getitem__, names)]
    if None in replacements and not _empty_hidden(pieces, replacements):
        return None
    pieces[1::2] = replacements
    return "".join(pieces) + source[end:]


def _empty_hidden(pieces: list[str], replacements: list[str | None]) -> bool:
    """Empty the hidden elements; return False if one of them holds anything but text."""
    at = -1
    for _ in range(replacements.count(None)):
        at = replacements.index(None, at + 1)
        name = (pieces[2 * at + 1] or "").lower()
        if not name:
            return False
        if not name.startswith("/"):
            if at + 1 == len(replacements) or (pieces[2 * at + 3] or "").lower() != f"/{name}":
                return False
            pieces[2 * at + 2] = ""
        replacements[at] = "" if name != "/head" else "\n"
    return True


def _drop_tags_one_by_one(source: str) -> str:
    source = _without_breaks(source)
    end = source.rfind(">") + 1
    # No tag can end behind the last `>`. Without this cut the expression would search there again for each `<`.
    pieces = _TAG.split(source[:end])
    pieces[1::2] = [_INSTEAD[name] or _HEAD.get((name or "").lower(), "") for name in pieces[1::2]]
    return "".join(pieces) + _UNENDED_TAG.sub("", source[end:])


def _without_breaks(source: str) -> str:
    for mark in _BREAKS_IN_SOURCE:
        source = source.replace(mark, " ")
    return source


def split_tags(source: str) -> Iterator[tuple[str, str, str]]:
    """Yield each tag as (text before it, tag, name), at last the text behind all tags with two empty strings.

    Comments, hidden elements and control characters are left out. The name is "" for a declaration.
    """
    source = _CONTROLS.sub("", _drop_hidden(_drop_comments(_within_bounds(source))))
    end, at = source.rfind(">") + 1, 0  # as in _drop_tags_one_by_one
    for tag in _TAG.finditer(source, 0, end):
        yield source[at : tag.start()], tag[0], (tag[1] or "").removeprefix("/")
        at = tag.end()
    yield source[at:end] + _UNENDED_TAG.sub("", source[end:]), "", ""


def _within_bounds(source: str) -> str:
    if len(source) <= MAX_MARKUP:
        return source
    return cut_before(cut_before(source[:MAX_SOURCE_CHARS], "<", MAX_MARKUP), "&", MAX_MARKUP)


def to_text(text: Text) -> str:
    """Return a feed's text as plain text."""
    return html_to_text(text.value) if text.is_html else tidy(text.value[:MAX_SOURCE_CHARS])


def clean_title(title: Text) -> str:
    """Return a title as plain text on one line."""
    value = title.value
    is_bare = ("&" not in value or not title.is_html) and "<" not in value
    if is_bare and value.isprintable() and "  " not in value:
        return value.strip(" ")
    return collapse(to_text(title._replace(value=_unwrapped(value))))


def clean_line(value: str) -> str:
    """Return a plain text on one line, without control characters."""
    # Printable characters are neither control characters nor white space other than the plain space.
    if value.isprintable() and "  " not in value:
        return value.strip(" ")
    return " ".join(_CONTROLS.sub("", value).split())


def collapse(text: str) -> str:
    """Return `text` with one space for each run of white space, and none around it."""
    line = text.replace("\n", " ")
    return line.strip(" ") if line.isprintable() and "  " not in line else " ".join(text.split())


def tidy(text: str) -> str:
    """Return `text` without control characters and lone surrogates, white space collapsed, line breaks kept once."""
    if len(text) <= _SHORT_CHARS and text.isprintable() and "  " not in text:
        return text.strip(" ")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\xa0", " ").replace("\t", " ")  # by far the most frequent characters that are not printable
    if _is_clean(text):  # as `clean_line` does, but all lines are tested at once
        lines = "\n".join(filter(None, map(str.strip, text.split("\n"))))
        if "  " not in lines:
            return lines
        return "\n".join([line if "  " not in line else " ".join(line.split()) for line in lines.split("\n")])
    return "\n".join(filter(None, map(clean_line, text.split("\n"))))


def _is_clean(text: str) -> bool:
    """Return whether `text` is printable but for its line breaks."""
    if text.isascii() and len(text) > _SHORT_CHARS:
        return not text.encode().translate(None, _PRINTABLE)  # four times as fast as `isprintable`
    return text.replace("\n", "").isprintable()


def cut_at_word(text: str, limit: int) -> str:
    """Return the first words of `text`, at most `limit` characters of them."""
    if len(text) <= limit:
        return text
    head = text[: limit + 1].rpartition(" ")[0].rstrip()
    return head if len(head) > limit // 2 else text[:limit].rstrip()


def content_quality(title: str, body: str) -> Quality:
    """Return how much of an article `body` is, by its length and its end.

    `title_only`: nothing, or the title once more. `stub`: under 140 characters. `full`: from 1,000 characters, unless
    it ends like a teaser ("…", "Read more"). All else is a `summary`.
    """
    if not body or body == title:
        return "title_only"
    if len(body) < STUB_BELOW_CHARS:
        return "stub"
    if len(body) < FULL_FROM_CHARS or _CUT_OFF.search(body[-40:]):
        return "summary"
    return "full"


def _drop_comments(source: str) -> str:
    if "<!" not in source:
        return source
    return _COMMENT.sub("", _unwrapped(source))


def _unwrapped(source: str) -> str:
    """Drop the marks of CDATA within CDATA, closed or not, also if one of them was escaped."""
    if "<![CDATA[" not in source:
        return source
    return source.replace("<![CDATA[", "").replace("]]>", "").replace("]]&gt;", "")


def _drop_hidden(source: str) -> str:
    """Drop the hidden elements, each up to its first end tag."""
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while found := _HIDDEN_OPEN.search(source, at):
        name = found[1].lower()
        close = None if name in unclosed else re.compile(f"</{name}", re.IGNORECASE).search(source, found.end())
        kept.append(source[at : found.start()])
        if close:
            at = close.start()  # the end tag goes with the other tags
        elif name in _TO_THE_END:
            return "".join(kept)
        else:
            unclosed.add(name)
            kept.append("<x")  # never closed: only the tag itself goes
            at = found.end()
    return "".join([*kept, source[at:]])


def _keep_preformatted(source: str) -> str:
    if "\n" not in source:
        return source
    return _PRE.sub(lambda match: match[0].replace("\n", "<br>"), source)
