"""Which known entries another one may repeat.

Of entries with the same url and title one is dropped (`entries._Seen`). So it has to be noticed that an entry has the
url and title of a known one, of which only the source is at hand. For this, url and title leave *traces*: texts that
depend on nothing else, and that the source of each known entry holds. What differs in a trace repeats nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from services.fetcher.parse.model import Deadline, timely
from shared.wire.results import Entry

MIN_PATH_CHARS = 6
"""The end of a url's path is a trace, from the last slash before so many characters: a link may be relative."""
MAX_WORDS = 6
"""So many words and numbers of a title are traces."""
MAX_TRIES = 50
"""So many places of a trace are looked at."""
MAX_SEARCHED_CHARS = 50_000_000
"""Reading all is quicker than a longer search."""

_WORD = re.compile("[0-9]+|[A-Za-z]{4,}")


def leaves_traces(entry: Entry, source: str) -> bool:
    """Return whether the traces of this entry are in its source. If not, it must not become a known one."""
    return _has(source, *_traces(entry))


def find_repeated(entries: Sequence[Entry], known: Mapping[bytes, str], deadline: Deadline | None) -> set[bytes]:
    """Return the digests of known sources that may give the url and title of one of the entries.

    Raises:
        OutOfTime: the deadline has passed.
    """
    if len(entries) * sum(map(len, known.values())) > MAX_SEARCHED_CHARS:
        return {*known}
    traces = [_traces(entry) for entry in timely(entries, deadline)]
    return {digest for digest, source in timely(known.items(), deadline) if any(_has(source, *one) for one in traces)}


def _traces(entry: Entry) -> tuple[list[str], list[str]]:
    """Return the traces of an entry's url, without its scheme, and those of its title."""
    _, _, path = entry.url.partition("://")[2].partition("/")
    path = path[path.rfind("/", 0, max(0, len(path) - MIN_PATH_CHARS)) + 1 :]
    chunks = sorted(filter(None, path.split("&")), key=len, reverse=True)  # an `&` is written in many ways
    return chunks, _WORD.findall(entry.title)[:MAX_WORDS]


def _has(source: str, chunks: Sequence[str], words: Sequence[str]) -> bool:
    for chunk in chunks:
        if not _has_whole(source, chunk):
            return False
    return all(word in source for word in words)


def _has_whole(source: str, chunk: str) -> bool:
    """Return whether `chunk` is in `source` without a letter or digit behind it: `/1` is not in `/12`."""
    at = -1
    for _ in range(MAX_TRIES):
        at = source.find(chunk, at + 1)
        behind = source[at + len(chunk) : at + len(chunk) + 1]
        if at < 0 or not (behind.isascii() and behind.isalnum()):
            return at >= 0
    return True  # the same for whichever entry has this trace, so no repetition is missed
