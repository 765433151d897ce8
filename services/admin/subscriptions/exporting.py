"""Writes the registered feeds as a list that other programs read, and that imports as the same feeds again.

In OPML a tag is a folder, and `a/b` a folder within a folder; a feed stands in each of its folders, as Feedly and
Inoreader write it. A feed's own settings (headers, passwords, interval) are in no list.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any, TextIO
from xml.sax.saxutils import quoteattr

from services.admin.feeds.tags import HAS_TAG, clean_tag
from services.admin.registry import Connection
from services.admin.subscriptions.model import MAX_NAME_CHARACTERS, Format
from services.fetcher.parse.document import strip_illegal
from shared.observability.secrets import mask_credentials
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

ROWS_AT_ONCE = 1000

_CHOSEN = f"(%(tag)s::text IS NULL OR {HAS_TAG})"

_BY_FEED = f"""
SELECT id, url, coalesce(name, title) AS name, site_url, source_type, tags FROM feeds WHERE {_CHOSEN}
ORDER BY url COLLATE "C"
"""  # noqa: S608 - our own text

# By URL, so that the same feeds give the same list. The parts of a folder's name are compared one by one, so that a
# folder's own folders stand together.
_BY_FOLDER = f"""
SELECT id, url, coalesce(name, title) AS name, site_url, source_type, string_to_array(tag, '/') AS folders
FROM feeds LEFT JOIN LATERAL unnest(tags) AS tag ON true
WHERE {_CHOSEN}
ORDER BY string_to_array(tag, '/') COLLATE "C" NULLS FIRST, url COLLATE "C"
"""  # noqa: S608 - our own text

CSV_HEADER = ("url", "name", "tags", "site_url", "source_type")

Row = dict[str, Any]


def export_feeds(
    connection: Connection, out: TextIO, form: Format, tag: str | None = None, *, masked: bool = False
) -> int:
    """Write the feeds, or those with `tag`, to `out`; the rows come from the server a thousand at a time.

    Returns:
        how many feeds have a URL that holds a password or a token. The list has these in full, since such a feed can't
        be fetched without it; with `masked` it has stars in their place.
    """
    statement = _BY_FOLDER if form is Format.OPML else _BY_FEED
    secrets: set[int] = set()

    def rows(cursor: Iterable[Row]) -> Iterator[Row]:
        for row in cursor:
            shown = mask_credentials(row["url"])
            if shown != row["url"]:
                secrets.add(row["id"])
            yield row | {
                "url": shown if masked else row["url"],
                "name": " ".join((row["name"] or "").split())[:MAX_NAME_CHARACTERS].rstrip(),
            }

    with connection.cursor(name="export") as cursor:
        cursor.itersize = ROWS_AT_ONCE
        cursor.execute(statement.encode(), {"tag": None if tag is None else clean_tag(tag)})
        out.writelines(WRITERS[form](rows(cursor)))
    return len(secrets)


def write_opml(rows: Iterable[Row]) -> Iterator[str]:
    """Yield an OPML 2.0 document of rows that are sorted by `folders`."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n<head><title>Feedmill</title></head>\n<body>\n'
    open_: list[str] = []
    for row in rows:
        folders = row["folders"] or []
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(open_, folders, strict=False)))
        yield "</outline>\n" * (len(open_) - shared)
        yield "".join(f"<outline{_attributes(text=name, title=name)}>\n" for name in folders[shared:])
        open_ = folders
        name = row["name"] or row["url"]
        kind = "rss" if row["source_type"] == DEFAULT_SOURCE_TYPE else row["source_type"]
        yield f"<outline{_attributes(type=kind, text=name, title=name, xmlUrl=row['url'], htmlUrl=row['site_url'])}/>\n"
    yield "</outline>\n" * len(open_) + "</body>\n</opml>\n"


def _attributes(**values: str | None) -> str:
    return "".join(f" {name}={quoteattr(strip_illegal(value))}" for name, value in values.items() if value)


def write_csv(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a CSV with a header. The tags are a line of CSV within their cell, since a tag may hold a comma."""
    yield _csv_line(CSV_HEADER)
    for row in rows:
        tags = _csv_line(row["tags"]).rstrip("\n") if row["tags"] else ""
        yield _csv_line((row["url"], row["name"], tags, row["site_url"], row["source_type"]))


def _csv_line(cells: Iterable[str | None]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([strip_illegal(cell or "") for cell in cells])
    return line.getvalue()


def write_list(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the URLs, one a line."""
    return (f"{row['url']}\n" for row in rows)


WRITERS: dict[Format, Callable[[Iterable[Row]], Iterator[str]]] = {
    Format.OPML: write_opml,
    Format.CSV: write_csv,
    Format.LIST: write_list,
}
