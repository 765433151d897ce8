"""Makes text of strangers safe to show: on a terminal, in a log line, on a page.

A title or a URL may hold escape sequences, marks that change the direction of writing, line breaks or invisible
characters. All of these are shown as JSON's escapes for them, so that JSON stays JSON.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from shared.observability.secrets import mask_credentials

MOST_CHARACTERS = 2000
"""The longest text on one line. A longer one is cut, and ends with the number of missing characters."""

# Not printable to Python: controls (C0, C1), format characters (bidi, zero-width), surrogates, separators of lines,
# unassigned ones. The pattern: characters that Python calls printable although they are invisible (fillers, joiners,
# variation selectors except those of emoji).
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
_DELETE = "\x7f"
_JOINERS = frozenset("\u200c\u200d")
"""They join or separate letters of Persian and of Indian scripts, and the parts of an emoji."""
_LAST_LATIN = "\u02ff"


def safe_to_show(text: object, most: int | None = MOST_CHARACTERS, *, lines: bool = False) -> str:
    r"""Return `text` on one line, without credentials and without characters that a terminal acts on.

    Args:
        text: anything with a text.
        most: the most characters to show; None: all.
        lines: keep line breaks (LF).

    >>> safe_to_show("a\x1b[2Jb\u202ec\nd http://me:secret@h/")
    'a\\u001b[2Jb\\u202ec\\nd http://***@h/'
    """
    masked = mask_credentials(str(text))
    if most is not None and len(masked) > most:
        masked = f"{masked[:most]}… ({len(masked) - most} more characters)"
    if masked.isprintable() and not _INVISIBLE.search(masked):
        return masked
    return "".join(
        character if character in _JOINERS and _joins(masked, at) else _shown(character, lines=lines)
        for at, character in enumerate(masked)
    )


def _as_json(value: object) -> str:
    """Return a moment as the API sends it (ISO 8601, UTC as `Z`), anything else as text."""
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)


_ASCII = json.JSONEncoder(default=_as_json)


def ascii_json(value: Any) -> str:
    """Return `value` as JSON in plain ASCII: equal for machines, and harmless on a terminal."""
    return _ASCII.encode(value).replace(_DELETE, "\\u007f")


def readable_json(value: Any) -> str:
    """Return `value` as indented JSON for a person, with the letters of any language as they are."""
    text = json.dumps(value, default=str, indent=2, ensure_ascii=False)
    return "".join(_shown(character, lines=True) for character in text)


def _joins(text: str, at: int) -> bool:
    """Return whether the joiner at this place is between two visible characters of a script that uses joiners."""
    sides = (text[at - 1 : at], text[at + 1 : at + 2])
    return all(side > _LAST_LATIN and side.isprintable() and not _INVISIBLE.match(side) for side in sides)


def _shown(character: str, *, lines: bool) -> str:
    if (character.isprintable() and not _INVISIBLE.match(character)) or (lines and character == "\n"):
        return character
    return "\\u007f" if character == _DELETE else json.dumps(character)[1:-1]
