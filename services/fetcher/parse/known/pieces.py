"""Splits the text of a feed into its head, the source of each entry, and its tail; None if that is not sure.

The text need not be well-formed, since its rest is read by a strict tier afterwards. But where each entry begins and
ends must be certain. So nothing stands between entries but white space and comments, and behind them the ends of the
enclosing elements. Time is proportional to the length; there is no step for each character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from services.fetcher.parse.document import strip_illegal
from shared.wire.jobs import DIGEST_BYTES

MAX_ENTRIES = 1_000
"""A feed with more has no pieces: its digests would make jobs too large."""

MAX_MARKS = 400_000
"""Texts with more `<`, `=` and `&` (or `{`, `[` and `":`) have no pieces: the reader's limits might be reached."""

_COMMENT = r"<!--(?:[^-<]++|-(?!-)|<(?!!\[CDATA\[))*+-->"  # for CDATA see `_past_section`
_INSTRUCTION = r"<\?(?:[^?]++|\?(?!>))*+\?>"
_DOCTYPE = r"<!DOCTYPE\s(?:[^<>\[\"']++|\"[^<>\"]*+\"|'[^<>']*+')*+>"
_PROLOG = re.compile(rf"(?:\s++|{_INSTRUCTION}|{_COMMENT}|{_DOCTYPE})*+", re.IGNORECASE)
_GAP = re.compile(rf"(?:\s++|{_COMMENT})*+")
_REST_OF_TAG = r"(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+>"
_PREFIX = r"(?:[\w.-]++:)?+"
_ROOT = re.compile(rf"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|rdf|feed)(?=[\s>]){_REST_OF_TAG}", re.IGNORECASE)
_CHANNEL = re.compile(rf"<{_PREFIX}channel(?=[\s/>]){_REST_OF_TAG}", re.IGNORECASE)
_ENTRY = re.compile(rf"<({_PREFIX}(?:item|entry))(?=[\s/>]){_REST_OF_TAG}", re.IGNORECASE)
_OF_HEAD = re.compile(rf"<(?:[!?]|{_PREFIX}(?:item|entry|channel)(?=[\s/>]))", re.IGNORECASE)
_TAIL = re.compile(
    rf"(?:</{_PREFIX}channel\s*+>{_GAP.pattern})?+</{_PREFIX}(?:rss|rdf|feed)\s*+>{_GAP.pattern}", re.IGNORECASE
)
_CDATA = "<![CDATA["
_ENDS = {"<![": (_CDATA, "]]>"), "<!-": ("<!--", "-->"), "<?": ("<?", "?>")}

_DECODER = json.JSONDecoder(strict=False)  # as in `formats.jsonfeed`
_BLANK = re.compile(r"[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class Pieces:
    """A feed's text in pieces."""

    head: str
    entries: tuple[str, ...]
    """The source of each entry."""
    tail: str
    frame: tuple[str, ...] = ()
    """The tags that enclose the entries."""
    separator: str = ""

    def only(self, entries: Iterable[str]) -> str:
        """Return the text of the same feed with these entries only."""
        return f"{self.head}{self.separator.join(entries)}{self.tail}"

    def plain(self, source: str) -> str:
        """Return the source of an entry with plain slashes, which many writers of JSON escape."""
        return source.replace("\\/", "/") if self.separator else source


def digest_of(*texts: str) -> bytes:
    """Return a digest of texts."""
    source = "\0".join(texts) if len(texts) > 1 else texts[0]
    return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def split(text: str) -> Pieces | None:
    """Return the pieces of a feed's text, which is not empty; None if it can't surely be split."""
    return _split_json(text) if text[0] in "{[" else _split_xml(strip_illegal(text))


def _split_xml(text: str) -> Pieces | None:
    start = _PROLOG.match(text).end()  # type: ignore[union-attr]  # it matches ""
    root = _ROOT.match(text, start)
    if root is None or _counts_more(text, "<", "=", "&"):
        return None
    first, channels = _read_head(text, root.end())
    bounds: list[tuple[int, int]] = []
    at = first
    while opening := _ENTRY.match(text, at):
        end = opening.end()
        if text[end - 2] != "/":
            end = _end_of_entry(text, opening[1], end)
        if end < 0 or len(bounds) >= MAX_ENTRIES:
            return None
        bounds.append((at, end))
        at = _GAP.match(text, end).end()  # type: ignore[union-attr]
    if not bounds or len(channels) > 1 or not _TAIL.fullmatch(text, at):
        return None
    return Pieces(text[:first], tuple([text[a:b] for a, b in bounds]), text[at:], (root[0], *channels))


def _read_head(text: str, at: int) -> tuple[int, list[str]]:
    """Return where the first entry begins (or the text ends), and the start tags of channels before it."""
    channels: list[str] = []
    while found := _OF_HEAD.search(text, at):
        if found[0] in {"<!", "<?"}:
            at = _past_section(text, found.start())
        elif tag := _CHANNEL.match(text, found.start()):
            channels.append(tag[0])
            at = tag.end()
        else:
            return found.start(), channels
        if at < 0:
            break
    return len(text), channels


@lru_cache(maxsize=32)
def _token_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"<(?:[!?]|/{re.escape(name)}\s*+>)")


def _end_of_entry(text: str, name: str, at: int) -> int:
    """Return where the entry ends whose start tag ends at `at`; -1 if that is not sure.

    With an element of the same name within it, its own end tag stands behind it: then it has no pieces.
    """
    token = _token_of(name)
    while found := token.search(text, at):
        if found[0] not in {"<!", "<?"}:
            return found.end()
        at = _past_section(text, found.start())
        if at < 0:
            break
    return -1


def _past_section(text: str, at: int) -> int:
    """Return where the CDATA section, comment or instruction at `at` ends; -1 if it is neither or has no end.

    The preparation of a document (`document.resolve_references`) takes the begin of a CDATA section in a comment for
    one: that is not sure either.
    """
    begin, close = _ENDS.get(text[at : at + 3], _ENDS.get(text[at : at + 2], ("", "")))
    if not begin or not text.startswith(begin, at):
        return -1
    end = text.find(close, at + len(begin))
    if end < 0 or (begin != _CDATA and text.find(_CDATA, at, end) >= 0):
        return -1
    return end + len(close)


def _split_json(text: str) -> Pieces | None:
    if _counts_more(text, "{", "[", '":'):
        return None
    try:
        bounds = _json_bounds(text)
    except (ValueError, RecursionError):
        return None
    if not bounds or len(bounds) > MAX_ENTRIES:
        return None
    entries = tuple([text[start:end] for start, end in bounds])
    return Pieces(text[: bounds[0][0]], entries, text[bounds[-1][1] :], separator=",")


def _json_bounds(text: str) -> list[tuple[int, int]]:
    """Return where the items of a JSON Feed begin and end; none if it has no list of items, or two.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deep.
    """
    bounds: list[tuple[int, int]] = []
    lists, at, mark = 0, _past_blank(text, 0), "{"
    while text.startswith(mark, at):
        key, at = _DECODER.raw_decode(text, _past_blank(text, at + 1))
        at = _past_blank(text, _past_blank(text, at) + 1)  # whether it is a colon, the reader of the rest checks
        if key != "items":
            _, at = _DECODER.raw_decode(text, at)
        else:
            lists += 1
            at = _past_items(text, at, bounds)
        at, mark = _past_blank(text, at), ","
    return bounds if lists == 1 else []


def _past_items(text: str, at: int, bounds: list[tuple[int, int]]) -> int:
    """Add the bounds of the items in the list that begins at `at`; return where it ends."""
    mark = "["
    while text.startswith(mark, at):
        start = _past_blank(text, at + 1)
        _, end = _DECODER.raw_decode(text, start)
        bounds.append((start, end))
        at, mark = _past_blank(text, end), ","
    if not text.startswith("]", at):
        raise json.JSONDecodeError("no list", text, at)
    return at + 1


def _past_blank(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def _counts_more(text: str, *marks: str) -> bool:
    return len(text) > MAX_MARKS and sum(map(text.count, marks)) > MAX_MARKS
