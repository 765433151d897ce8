"""CSV with a header, and plain lists of URLs, to feeds.

The columns of a CSV are found by their names. If the header is in another language (YouTube's takeout has the
account's), the first row shows which column has URLs. Channels' pages of YouTube become the feeds of the channels.

In a plain list a line is a URL; `#` begins a comment. What stands behind the URL is read as Newsboat writes it:
tags, of several words in quotes, and `"~The name"`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from services.admin.subscriptions.model import BadList, Flaws, Listed, clean_name
from services.admin.subscriptions.outlines import read_tags
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

MAX_LINE_CHARACTERS = 65_536

COLUMNS = {
    "url": ("url", "xmlurl", "feedurl", "feed", "rss", "rssurl", "rssfeed", "feedlink", "channelurl"),
    "name": ("name", "title", "text", "feedtitle", "feedname", "channeltitle"),
    "tags": ("tags", "tag", "category", "categories", "folder", "folders", "label", "labels", "group"),
    "site_url": ("siteurl", "htmlurl", "site", "website", "homepage", "weburl"),
    "source_type": ("sourcetype",),
}
"""By a feed's field, the names of its column: in lower case, without spaces, `_` and `-`. The first found counts."""

_CHANNEL = re.compile(r"https?://(?:www\.)?youtube\.com/channel/(UC[\w-]{22})/?")
_CHANNEL_ID = re.compile(r"UC[\w-]{22}")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


def read_list(blocks: Iterable[str], flaws: Flaws) -> Iterator[Listed]:
    """Yield the feeds of a plain list of URLs."""
    for number, line in enumerate(split_lines(blocks), 1):
        url, *rest = line.strip("\ufeff \t").split(None, 1) or [""]
        if not url or url.startswith("#"):
            continue
        words = [a or b for a, b in _WORD.findall(rest[0])] if rest else []
        names = [word[1:] for word in words if word.startswith("~")]
        tags = [word for word in words if not word.startswith(("~", "!"))]
        name = clean_name(names[0], url, number, flaws) if names else ""
        yield Listed(number, url, name, read_tags(tags, number, flaws))


def read_csv(blocks: Iterable[str], flaws: Flaws, *, strict: bool = True) -> Iterator[Listed]:
    """Yield the feeds of a CSV; its delimiter is that of the header: a comma, a semicolon or a tab.

    Args:
        blocks: the text.
        flaws: where flaws are noted.
        strict: refuse wrong quotes. Otherwise they are read as `csv` does.

    Raises:
        BadList: there is no header, a quote is not closed, or a line is too long.
    """
    rows = _rows(blocks, strict=strict)
    line, header = next(rows, (1, []))
    columns = _find_columns(header)
    if columns is None:
        first = next(rows, None)
        columns = _columns_by(first[1]) if first else None
        if first is None or columns is None or any("://" in cell for cell in header):
            raise BadList(
                line, "the first line is no header with a column for URLs: expected one such as url,name,tags"
            )
        yield columns.read(*first, flaws)
    for line, row in rows:
        yield columns.read(line, row, flaws)


def has_header(line: str) -> bool:
    """Return whether a line is the header of a CSV."""
    row = next(csv.reader([line], delimiter=_delimiter(line)), [])
    return _find_columns(row) is not None


@dataclass(frozen=True)
class _Columns:
    """In which column which field of a feed stands; -1: in none."""

    url: int
    name: int = -1
    tags: int = -1
    site_url: int = -1
    source_type: int = -1

    def read(self, line: int, row: Sequence[str], flaws: Flaws) -> Listed:
        """Return the feed in a row."""

        def cell(column: int) -> str:
            return row[column].strip() if 0 <= column < len(row) else ""

        url = cell(self.url)
        if channel := _CHANNEL.fullmatch(url):
            url = f"https://www.youtube.com/feeds/videos.xml?channel_id={channel[1]}"
        tags = next(csv.reader([cell(self.tags).replace("\n", " ")], skipinitialspace=True), [])
        return Listed(
            line,
            url,
            clean_name(cell(self.name), url, line, flaws),
            read_tags(tags, line, flaws),
            cell(self.site_url),
            cell(self.source_type) or DEFAULT_SOURCE_TYPE,
        )


def _find_columns(header: Sequence[str]) -> _Columns | None:
    names = [re.sub(r"[\s_\ufeff-]", "", cell).lower() for cell in header]
    found = {
        field: names.index(name)
        for field, candidates in COLUMNS.items()
        if (name := next(filter(names.__contains__, candidates), None)) is not None
    }
    return _Columns(**found) if "url" in found else None


def _columns_by(row: Sequence[str]) -> _Columns | None:
    """Return the columns of a table with an unknown header, by its first row."""
    url = next((n for n, cell in enumerate(row) if re.match(r"\s*https?://", cell)), -1)
    is_takeout = len(row) == 3 and url == 1 and _CHANNEL_ID.fullmatch(row[0].strip())
    return None if url < 0 else _Columns(url, name=2 if is_takeout else -1)


def _rows(blocks: Iterable[str], *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the line where it begins."""
    lines = _within_bounds(split_lines(blocks))
    number, header = next(((n, line) for n, line in enumerate(lines, 1) if line.strip()), (1, ""))
    reader = csv.reader(_ended([header], lines), delimiter=_delimiter(header), strict=strict)
    begins = number
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield begins, row
            begins = number + reader.line_num
    except csv.Error as error:
        raise BadList(begins, f"the CSV can't be read: {error}", salvageable=strict) from None


def _ended(*parts: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in chain(*parts))


def _within_bounds(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise BadList(number, f"a line with more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def split_lines(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the lines. Of one that is too long only the beginning and the end are kept, and it stays too long."""
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
        rest = rest[: MAX_LINE_CHARACTERS + 1]
    if rest:
        yield rest
