"""The formats that the reader knows, and the tiers that read them.

`format` says what a feed is written in: rss, atom, rdf or json. `tier` says how tolerant the reader was that took it:

    strict    well-formed XML, at a tenth of the lenient tier's cost; it declines what it is not sure of
    lenient   XML as feedparser tolerates it; gives the strict tier's answer wherever that one gives an answer
    json      JSON, with some tolerance
    salvage   a feed within an HTML page, JSON that breaks off, or single entries out of broken markup

To add an XML format, NewsML for example:

1. Write `formats/newsml.py` with a function from `Document` and deadline to `RawFeed`. It raises `Declined` if another
   tier of the format has to read the document, and `Unparseable` or `NotAFeed` if none can.
2. Add `Format("newsml", frozenset({"newsmessage"}), {"strict": read_newsml})` to `XML_FORMATS`.

`entries` makes the same articles of every `RawFeed`. What is tolerated around entries knows RSS, Atom and RDF only:
text before the root element (`document`), feeds that break off (`extents`), the head of a feed (`facts`), `salvage`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from services.fetcher.parse.document import Document, prepare
from services.fetcher.parse.facts import read_facts
from services.fetcher.parse.formats.jsonfeed import read_json, save_json
from services.fetcher.parse.formats.lenient import read_lenient
from services.fetcher.parse.formats.salvage import read_salvage
from services.fetcher.parse.formats.strict import read_strict
from services.fetcher.parse.model import Deadline, Declined, OutOfTime, ParseError, RawFeed, Unparseable, check_time

Reader = Callable[[Document, Deadline | None], RawFeed]


@dataclass(frozen=True, slots=True)
class Format:
    """An XML format: its name, how its documents are recognised, and who reads them."""

    name: str
    roots: frozenset[str]
    """Names of its root elements, in lower case and without prefix."""
    readers: Mapping[str, Reader]
    """By tier, the strictest first. The next one reads what the one before it declines."""


_READERS: Mapping[str, Reader] = {"strict": read_strict, "lenient": read_lenient}

XML_FORMATS = (
    Format("rss", frozenset({"rss", "channel"}), _READERS),
    Format("atom", frozenset({"feed"}), _READERS),
    Format("rdf", frozenset({"rdf"}), _READERS),
)

FORMAT_OF_ROOT = {root: known for known in XML_FORMATS for root in known.roots}


def read_feed(text: str, deadline: Deadline | None) -> tuple[str, RawFeed]:
    """Return the tier that read this text, which is not empty, and what it read.

    Raises:
        NotAFeed: it is something else.
        Unparseable: no tier can read it.
        OutOfTime: the deadline has passed.
    """
    read = _read_json if text[0] in "{[" else _read_xml
    try:
        return read(text, deadline)
    except OutOfTime:
        raise
    except ParseError as error:
        saved = _save(text, error, deadline)
        if saved is None:
            raise
        return "salvage", saved


def read_strictly(text: str, deadline: Deadline | None) -> tuple[str, RawFeed] | None:
    """Return the same as `read_feed` if the strictest tier of the format reads this text, else None.

    Raises:
        OutOfTime: the deadline has passed.
    """
    try:
        return _read_json(text, deadline) if text[0] in "{[" else _read_xml(text, deadline, tiers=1)
    except OutOfTime:
        raise
    except ParseError:
        return None


def _read_json(text: str, deadline: Deadline | None) -> tuple[str, RawFeed]:
    return "json", read_json(text, deadline)


def _read_xml(text: str, deadline: Deadline | None, tiers: int | None = None) -> tuple[str, RawFeed]:
    document = prepare(text, FORMAT_OF_ROOT, deadline)
    found = FORMAT_OF_ROOT[document.root]
    for tier, read in islice(found.readers.items(), tiers):
        check_time(deadline)
        try:
            raw = read(document, deadline)
        except Declined:
            continue
        return tier, replace(raw, format=found.name, facts=read_facts(document.source))
    raise Unparseable(f"{found.name} that no tier reads")


def _save(text: str, error: ParseError, deadline: Deadline | None) -> RawFeed | None:
    if text[0] in "{[":
        return save_json(text, deadline) if isinstance(error, Unparseable) else None
    return read_salvage(text, lambda source: _read_xml(source, deadline)[1], deadline)
