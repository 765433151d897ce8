"""Tags of feeds: few short texts, kept as they are spelled, compared without regard to case.

`a/b` is a folder within a folder. A tag without its slashes at both ends, empty parts and doubled white space is the
same tag.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from services.admin.errors import Invalid
from shared.database import postgres

MAX_TAGS = 32
"""Of one feed; a constraint of the table says it, too."""

MAX_TAG_CHARACTERS = 100

HAS_TAG = "(tag_keys <> '{}' AND tag_keys @> fold_tags(ARRAY[%(tag)s::text]))"
"""SQL: the feed has the tag. The first part lets the index serve it."""

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")


def clean_tag(text: str, field: str | None = None) -> str:
    """Return a tag in the form in which it is stored. `field` is where it stands in a request.

    Raises:
        Invalid: it is empty or too long.
    """
    plain = unicodedata.normalize("NFC", _CONTROLS.sub("", text))
    tag = "/".join(filter(None, (" ".join(part.split()) for part in plain.split("/"))))
    if not tag:
        raise Invalid("a tag is empty: give it a letter at least", field)
    if len(tag) > MAX_TAG_CHARACTERS:
        raise Invalid(f"a tag has {len(tag)} characters; at most {MAX_TAG_CHARACTERS} are taken", field)
    return tag


def merge_tags(present: Iterable[str], more: Iterable[str], most: int | None = MAX_TAGS) -> list[str]:
    """Return the tags of both, each once, in its first spelling and in their order; `most` of them."""
    merged: dict[str, str] = {}
    for tag in (*present, *more):
        merged.setdefault(tag.lower(), tag)
    return list(merged.values())[:most]


def changed_tags(
    present: Sequence[str], add: Sequence[str], remove: Sequence[str], field: str = "body.add_tags"
) -> list[str]:
    """Return a feed's tags with some given and some taken. `field` is where those to add stand in the request.

    Raises:
        Invalid: a tag can't be used, or there would be too many.
    """
    removed = {clean_tag(tag, "body.remove_tags").lower() for tag in remove}
    kept = [tag for tag in present if tag.lower() not in removed]
    tags = merge_tags(kept, (clean_tag(tag, field) for tag in add), most=None)
    if len(tags) > MAX_TAGS:
        raise Invalid(f"there would be {len(tags)} tags; a feed has at most {MAX_TAGS}", field)
    return tags


_IN_USE = """
SELECT tag_key COLLATE "C" AS tag_key, min(tag) AS tag, count(*) AS feeds, count(*) FILTER (WHERE enabled) AS enabled
FROM feeds, unnest(tag_keys, tags) AS given (tag_key, tag)
WHERE tag_keys <> '{}' AND (%(after)s::text IS NULL OR tag_key COLLATE "C" > %(after)s)
GROUP BY 1 ORDER BY 1 LIMIT %(limit)s
"""


async def list_tags(connection: postgres.Connection, *, limit: int, after: str | None) -> list[dict[str, Any]]:
    """Return the tags in use, by their letters in lower case (`tag_key`), with how many feeds have them."""
    cursor = await connection.execute(_IN_USE, {"limit": limit, "after": after})
    return await cursor.fetchall()
