"""Names out of what feeds write about authors.

RSS asks for `jane@example.org (Jane Doe)`; there is also `Jane Doe <mailto:jane@example.org>`, several of these in one
text, an address alone, a name alone. A text without an address is a name as it stands. Some systems put a name into
markup, or escape it once too often (`<span typeof="schema:Person">Jane</span>`, `Andr&eacute;`): tags and references
are no part of a name.
"""

from __future__ import annotations

import html
import re

MAX_AUTHOR_CHARS = 500

_LABEL = r"[^\W_](?:[\w-]*[^\W_])?"
_HOST = rf"(?:{_LABEL}[.\u3002])+(?:[^\W\d_][\w-]*[^\W_]|[^\W\d_])|(?:\d{{1,3}}\.){{3}}\d{{1,3}}|\[[\da-fA-Fx.:]+\]"
_LOCAL = r"[\w+][\w.+'=&#$%*!~^-]*"
_QUERY = r"(?:\?[^\s<>()\[\]]*)?"
# Not within a word, a handle of the fediverse (`@jane@example.social`) or a URL (`https://jane@example.org/`).
_ALONE = rf"(?:(?<!\w)mailto:/*|(?<![\w@./+'=&#$%*!~^-])){_LOCAL}@(?:{_HOST}){_QUERY}"
_BRACKETED = rf"\s*(?:mailto:/*)?{_LOCAL}@(?:{_HOST}|{_LABEL}){_QUERY}\s*"
_ADDRESS = re.compile(rf"<{_BRACKETED}>|\({_BRACKETED}\)|\[{_BRACKETED}\]|{_ALONE}", re.IGNORECASE)
_WITHOUT_DOMAIN = re.compile(rf"(?:mailto:)?{_LOCAL}@{_LABEL}(?=\s*\([^@]*\)$|$)", re.IGNORECASE)
"""`root@localhost (Jane Doe)`: taken for an address only where it begins the text and a name or nothing follows."""
_BARE = re.compile(rf"{_LOCAL}@(?:{_HOST}|{_LABEL})", re.IGNORECASE)

_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*+(?:\s[^<>]*+)?/?>")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_SEPARATORS = " \t\r\n\xa0,;:|/&\u00b7\u2022\u2013\u2014-"
_AND = re.compile(r"^(?:and|und|et|y)\s|\s(?:and|und|et|y)$")
_PAIRS = {"(": ")", "[": "]", "<": ">", '"': '"', "'": "'", "\u201c": "\u201d", "\u00ab": "\u00bb", "\u201e": "\u201c"}


def read_names(text: str) -> tuple[str, ...]:
    """Return the names of the people in an author's text; an address if a person has no name there."""
    if "@" not in text:
        return (_without_markup(text),)
    text = _TAG.sub(" ", html.unescape(text[:MAX_AUTHOR_CHARS])).strip()
    found = [*_ADDRESS.finditer(text)] or [*filter(None, [_WITHOUT_DOMAIN.match(text)])]
    if not found:
        return (text,)
    if len(found) == 1:
        return (_name(text[: found[0].start()] + " " + text[found[0].end() :]) or _address(found[0]),)
    bounds = [0, *[bound for one in found for bound in one.span()], len(text)]
    between = [_name(text[start:end]) for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    names, rest = (between[1:], "") if not between[0] else (between[:-1], between[-1])
    people = [name or _address(one) for name, one in zip(names, found, strict=True)]
    return tuple(dict.fromkeys([*people, rest] if rest else people))


def _without_markup(text: str) -> str:
    """Return a name without tags and references; unchanged if nothing else is in it."""
    if "<" not in text and "&" not in text:
        return text
    plain = _REFERENCE.sub(lambda found: html.unescape(found[0]), text[:MAX_AUTHOR_CHARS])
    return _TAG.sub(" ", plain).strip() or text


def _address(found: re.Match[str]) -> str:
    match = _BARE.search(re.sub(r"(?i)mailto:/*", "", found[0]))
    return match[0] if match else found[0]


def _name(text: str) -> str:
    """Return a text without the separators, brackets and quotes around it."""
    before = None
    while text != before:
        before = text
        text = _AND.sub("", text.replace("<>", "").replace("()", "").strip(_SEPARATORS)).strip(_SEPARATORS)
        if len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and _is_one(text):
            text = text[1:-1]
        elif text[:1] in {"(", "<"} and _PAIRS[text[0]] not in text:
            text = text[1:]
        elif text[-1:] in {")", ">"} and {")": "(", ">": "<"}[text[-1]] not in text:
            text = text[:-1]
    return text


def _is_one(text: str) -> bool:
    """Return whether the first and the last character enclose all that is between."""
    opening, closing = text[0], text[-1]
    if opening == closing:
        return opening not in text[1:-1]
    depth = 0
    for at, char in enumerate(text):
        depth += (char == opening) - (char == closing)
        if not depth:
            return at == len(text) - 1
    return False
