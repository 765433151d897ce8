"""The rules by which an entry of a feed becomes an article. They are the same for every format and tier.

- url: the entry's link (`links.own_address` chooses from several). Without a link it is the guid if that is an http(s)
  URL and the feed does not deny it, else the first http(s) enclosure, else "". Relative addresses are resolved against
  the feed's own link, then against the feed's URL.
- title: plain text on one line. Without a title it is the first 80 characters of the body up to a word, else the URL
  (flag `title_guessed`). It is cut at 2,000 characters (`title_cut`).
- body: the full text, else the summary, else the entry's own title. It is cut at 1,000,000 characters (`body_cut`). Of
  its source at most 4,000,000 characters, 300,000 tags and 300,000 references are read.
- html: only on request. It is the body if that is HTML, or a picture without text, made safe by `text.markup`. Links
  are resolved against `xml:base`, the entry's url, the feed's own link, the feed's URL. It is cut at 1,000,000
  characters or four times its source (`html_cut`).
- published_at: the date of publication, else that of the last update. A date in the far future becomes now
  (`date_clamped`). A date without a year, or relative to now, is `date_guessed`. If nothing in the feed tells whether
  the day or the month stands first, the date is `date_ambiguous`.
- author: the names of the entry's authors, else of the feed's, with commas between. An address replaces a missing name.
- entry_id: the guid, else the url, else the md5. A guid over 2,000 characters is ignored.
- An entry without url, title and body is dropped. Of entries with the same url (http or https) and title the first is
  kept. The others are kept too if all have guids, and guids and texts differ. Only the writer can tell whether a guid
  is stable from one fetch to the next.
- The order of the feed is kept. Of more than `max_entries` the newest by date are kept; undated ones count as oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

from services.fetcher.parse.dates import Date, bound_date
from services.fetcher.parse.dates.loose import LooseDates
from services.fetcher.parse.identity import article_md5, hash_tidied
from services.fetcher.parse.model import Deadline, RawEnclosure, RawEntry, RawFeed, check_time, timely
from services.fetcher.parse.text import MAX_SOURCE_CHARS, clean_line, clean_title, content_quality, cut_at_word, to_text
from services.fetcher.parse.text.authors import read_names
from services.fetcher.parse.text.links import absolute
from services.fetcher.parse.text.markup import safe_html
from shared.wire.jobs import DateOrder
from shared.wire.results import Enclosure, Entry, FeedInfo

MAX_TITLE_CHARS = 2_000
MAX_BODY_CHARS = 1_000_000
MAX_GUID_CHARS = 2_000
GUESSED_TITLE_CHARS = 80
MAX_NAME_CHARS = 200
"""The longest name of an author or a category; longer ones are cut."""
MAX_NAMES = 100
MAX_AUTHORS_CHARS = 2_000
"""The limit for all of the feed's authors, which are repeated in each entry without an author."""
MAX_ENCLOSURES = 100
MAX_FEED_ENCLOSURES = 50_000
"""The limit for all entries together. Once it is reached, each further entry keeps one."""
MAX_LOOKED_AT = 1_000
"""So many names or enclosures of an entry are read: some may be repeated or invalid."""

_NO_DATE = datetime.min.replace(tzinfo=UTC)


class Built(NamedTuple):
    """The articles of a feed."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    """Warnings that count the entries left out."""
    places: tuple[int, ...]
    """The place of each article in `RawFeed.entries`."""
    date_order: DateOrder | None = None
    """What stands first in numeric dates, as one of them proves."""


def build_entries(
    raw: RawFeed,
    *,
    bases: tuple[str, ...],
    language: str | None,
    now: datetime,
    max_entries: int,
    keep_html: bool = False,
    deadline: Deadline | None = None,
    date_order: DateOrder | None = None,
) -> Built:
    """Return the feed's entries by the rules above. `date_order` is what is known to stand first in numeric dates."""
    dates = (date for item in raw.entries for date in (item.published_at, item.updated_at) if isinstance(date, str))
    loose = LooseDates(timely(dates, deadline), now=now, language=language, told=date_order)
    authors: dict[tuple[str, ...], str] = {(): ", ".join(_authors(raw.authors))[:MAX_AUTHORS_CHARS]}
    found: list[tuple[int, Entry]] = []
    seen = _Seen()
    empty, repeated, beyond, files = raw.empty, 0, 0, MAX_FEED_ENCLOSURES
    for count, at in enumerate(_newest_first(raw.entries, loose, now, max_entries, deadline)):
        check_time(deadline)
        if len(found) == max_entries:
            beyond = len(raw.entries) - count
            break
        source = raw.entries[at]
        if files <= 0:
            source = source._replace(enclosures=source.enclosures[:1])
        entry = _build_entry(source, authors, loose, bases=bases, language=language, now=now)
        if entry is None:
            empty += 1
        elif not seen.add(entry):
            repeated += 1
        else:
            found.append((at, _with_html(entry, source, bases, deadline) if keep_html else entry))
            files -= len(entry.enclosures)
    counted = (
        (empty, "without url, title and text dropped"),
        (repeated, "with the url and title of an earlier one dropped"),
        (beyond, f"beyond the newest {max_entries} dropped"),
    )
    found.sort(key=itemgetter(0))
    warnings = tuple(f"entries {what}: {number}" for number, what in counted if number)
    return Built(tuple([entry for _, entry in found]), warnings, tuple([at for at, _ in found]), loose.proven)


class _Seen:
    """The entries of the feed so far."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
        """Given ids and content hashes by address and title."""

    def add(self, entry: Entry) -> bool:
        """Add the entry, and return True, unless it repeats an earlier one (the rule stands above)."""
        key = (entry.url.partition("://")[2], entry.title)
        given = entry.entry_id if entry.id_is_given else ""
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = {given}, {entry.content_hash}
            return True
        ids, texts = seen
        if not given or "" in ids or given in ids or entry.content_hash in texts:
            return False
        ids.add(given)
        texts.add(entry.content_hash)
        return True


def _newest_first(
    entries: Sequence[RawEntry], loose: LooseDates, now: datetime, limit: int, deadline: Deadline | None
) -> Iterable[int]:
    """Return the positions of the entries in the order of reading: newest first if they exceed `limit`."""
    if len(entries) <= limit:
        return range(len(entries))

    def age(at: int) -> datetime:
        check_time(deadline)
        dates = (entries[at].published_at, entries[at].updated_at)
        return next(filter(None, (_final_date(date, loose, now, set()) for date in dates)), _NO_DATE)

    return sorted(range(len(entries)), key=age, reverse=True)


def read_info(raw: RawFeed, url: str) -> FeedInfo:
    """Return title, site and language of a feed that came from `url`."""
    title, site_url = clean_title(raw.title)[:MAX_TITLE_CHARS], absolute(raw.link, url)
    return FeedInfo(title=title or None, site_url=site_url or None, language=read_language(raw.language))


def read_language(tag: str) -> str | None:
    """Return a language tag (BCP 47) with hyphens, or None if `tag` is not valid."""
    if not tag:
        return None
    parts = tag.strip().replace("_", "-").split("-")
    if not (parts[0].isascii() and parts[0].isalpha() and 2 <= len(parts[0]) <= 3):
        return None
    return "-".join(parts) if all(p.isascii() and p.isalnum() and len(p) <= 8 for p in parts) else None


def _build_entry(
    raw: RawEntry,
    authors: dict[tuple[str, ...], str],  # of the entries so far, by their raw names: most have the same
    loose: LooseDates,
    *,
    bases: tuple[str, ...],
    language: str | None,
    now: datetime,
) -> Entry | None:
    enclosures = _enclosures(raw.enclosures, bases) if raw.enclosures else ()
    guid = clean_line(raw.guid[: 5 * MAX_GUID_CHARS])
    url = _url(raw, guid, enclosures, bases)
    own_title, body = clean_title(raw.title), next(filter(None, map(to_text, raw.bodies)), "")
    if not (url or own_title or body):
        return None
    flags: set[str] = set()
    title, body = _title_and_body(raw, own_title, body, url, flags)
    published_at = _final_date(raw.published_at, loose, now, flags) if raw.published_at else None
    updated_at = _final_date(raw.updated_at, loose, now, flags) if raw.updated_at else None
    author = authors.get(raw.authors)
    if author is None:
        author = authors[raw.authors] = ", ".join(_authors(raw.authors)) or authors[()]
    md5 = article_md5(url, title)
    guid = guid if len(guid) <= MAX_GUID_CHARS else ""
    return Entry.of_valid(
        {
            "entry_id": guid or url or md5,
            "id_is_given": bool(guid),
            "url": url,
            "title": title,
            "body": body,
            "html": None,
            "content_quality": content_quality(own_title, body),
            "published_at": published_at or updated_at,
            "updated_at": updated_at,
            "author": author or None,
            "categories": _names(raw.categories) if raw.categories else (),
            "enclosures": enclosures,
            "language": (read_language(raw.language) if raw.language else None) or language,
            "md5": md5,
            "content_hash": hash_tidied(title, body),
            "enrichment": None,
            "flags": tuple(sorted(flags)) if flags else (),
        }
    )


def _url(raw: RawEntry, guid: str, enclosures: Sequence[Enclosure], bases: tuple[str, ...]) -> str:
    url = absolute(raw.link, *bases) or (absolute(guid) if raw.guid_is_link else "")
    url = url or next((enclosure.url for enclosure in enclosures), "")
    return absolute(guid, *bases) if not url and raw.guid_is_link and guid.startswith("/") else url


def _title_and_body(raw: RawEntry, own_title: str, body: str, url: str, flags: set[str]) -> tuple[str, str]:
    if own_title:
        title, body = own_title, body or own_title
    else:
        title = cut_at_word(clean_line(body), GUESSED_TITLE_CHARS) or url
        flags.add("title_guessed")
    if len(title) > MAX_TITLE_CHARS:
        title = _cut(title, MAX_TITLE_CHARS, "title_cut", flags)
    if len(body) > MAX_BODY_CHARS:
        body = _cut(body, MAX_BODY_CHARS, "body_cut", flags)
    for text in raw.bodies:
        if len(text.value) > MAX_SOURCE_CHARS:
            flags.add("body_cut")
    return title, body


def _with_html(entry: Entry, raw: RawEntry, bases: tuple[str, ...], deadline: Deadline | None) -> Entry:
    body = next(filter(to_text, raw.bodies), None) or next((text for text in raw.bodies if "<img" in text.value), None)
    if body is None or not body.is_html:
        return entry
    html, is_cut = safe_html(body.value, *filter(None, (body.base, entry.url, *bases)), deadline=deadline)
    flags = (*entry.flags, "html_cut") if is_cut else entry.flags
    return entry.model_copy(update={"html": html or None, "flags": tuple(sorted(flags))})


def _final_date(date: Date, loose: LooseDates, now: datetime, flags: set[str]) -> datetime | None:
    if isinstance(date, str):
        reading = loose.read(date)
        flags |= {"date_guessed"} if reading and reading.is_guessed else set()
        flags |= {"date_ambiguous"} if reading and reading.is_ambiguous else set()
        date = reading.moment if reading else None
    moment, is_clamped = bound_date(date, now)
    if is_clamped:
        flags.add("date_clamped")
    return moment


def _cut(text: str, limit: int, flag: str, flags: set[str]) -> str:
    flags.add(flag)
    return text[:limit].rstrip()


def _names(raw: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, in the feed's order."""
    names = [clean_line(name[: 5 * MAX_NAME_CHARS])[:MAX_NAME_CHARS].rstrip() for name in raw[:MAX_LOOKED_AT] if name]
    return tuple(dict.fromkeys(filter(None, names)))[:MAX_NAMES]


def _authors(raw: Sequence[str]) -> tuple[str, ...]:
    return _names([name for text in raw[: 10 * MAX_NAMES] for name in read_names(text)]) if raw else ()


def _enclosures(raw: Sequence[RawEnclosure], bases: tuple[str, ...]) -> tuple[Enclosure, ...]:
    found: dict[str, Enclosure] = {}
    for item in raw[:MAX_LOOKED_AT]:
        url = absolute(item.url, *bases)
        if url and url not in found and len(found) < MAX_ENCLOSURES:
            length = int(item.length) if item.length.isdecimal() and len(item.length) <= 15 else None
            found[url] = Enclosure(url=url, type=clean_line(item.type[:MAX_NAME_CHARS]) or None, length=length or None)
    return tuple(found.values())
