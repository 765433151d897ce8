"""The source type `github_releases`: GitHub's list of a repository's releases (`/repos/OWNER/NAME/releases`).

It says what the repository's Atom feed does not: which releases are drafts or pre-releases, and their files.

The id of an entry is the release's number, which stays when tag or repository are renamed. The body is the release's
notes in Markdown, as they are; or in HTML, if the feed's own header asks for it
(`Accept: application/vnd.github.html+json`).
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from fnmatch import translate
from typing import Any

from pydantic import Field

from services.fetcher.parse.dates import read_date
from services.fetcher.parse.model import RawEnclosure, check_time
from services.fetcher.sources import (
    NotAFeed,
    RawEntry,
    RawFeed,
    ReadContext,
    Reading,
    RequestConfig,
    SourceType,
    Text,
    Unparseable,
    make_reading,
)

MAX_CONTAINERS = 400_000
"""Objects and lists of a document. An object of seven characters takes 250 bytes when decoded."""

MAX_PATTERN_CHARACTERS = 100

_TELLING = frozenset({"tag_name", "draft", "prerelease"})
"""Every release has these members."""

_REPOSITORY = re.compile(r"(https?://[^/?#\s]+/[^/?#\s]+/([^/?#\s]+))/releases(?:/|$)")

Json = dict[str, Any]


class GitHubReleasesConfig(RequestConfig):
    """Which releases become entries."""

    prereleases: bool = Field(False, strict=True, description="true or false: whether pre-releases become entries, too")
    tags: str = Field(
        "*",
        min_length=1,
        max_length=MAX_PATTERN_CHARACTERS,
        pattern=r"^[^\x00-\x20]+$",
        description=f"a pattern such as v3.* for tags, of at most {MAX_PATTERN_CHARACTERS} characters without spaces",
    )


def read(body: bytes, context: ReadContext[GitHubReleasesConfig]) -> Reading:
    """Return the releases that are published, and of the kind that the feed wants."""
    releases = _decode(body)
    wanted = re.compile(translate(context.config.tags))
    entries = []
    for release in releases:
        check_time(context.deadline)
        if not isinstance(release, dict) or release.get("draft") is True:
            continue
        if release.get("prerelease") is True and not context.config.prereleases:
            continue
        if wanted.match(_text(release, "tag_name")[:1000]):
            entries.append(_entry(release))
    return make_reading(RawFeed(format="json", **_about(releases), entries=tuple(entries)), context)


def _decode(body: bytes) -> list[Any]:
    text = body.decode("utf-8", "replace")
    if text.count("{") + text.count("[") > MAX_CONTAINERS:
        raise Unparseable("JSON with more objects and lists than any list of releases has")
    try:
        releases = json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        kind = NotAFeed if text.lstrip()[:1] not in {"[", "{"} else Unparseable
        raise kind(f"no JSON ({str(error)[:200]})") from None
    except RecursionError:
        raise Unparseable("JSON that is nested too deep") from None
    if isinstance(releases, dict) and isinstance(releases.get("message"), str):
        raise NotAFeed(f"GitHub's message {releases['message'][:200]!r} in place of releases")
    if not isinstance(releases, list):
        raise NotAFeed("JSON that is no list of releases: the URL ends with /repos/OWNER/NAME/releases")
    if releases and not any(isinstance(one, dict) and one.keys() >= _TELLING for one in releases):
        raise NotAFeed("a list without releases in it: the URL ends with /repos/OWNER/NAME/releases")
    return releases


def _about(releases: list[Any]) -> dict[str, Any]:
    """Return title and site of the feed, which only the pages of its releases tell."""
    for release in releases:
        page = _REPOSITORY.match(_text(release, "html_url")[:1000]) if isinstance(release, dict) else None
        if page:
            return {"title": Text(f"{page[2]} releases"), "link": page[1]}
    return {}


def _entry(release: Json) -> RawEntry:
    number, tag = release.get("id"), _text(release, "tag_name")
    author = release.get("author")
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
    return RawEntry(
        guid=f"github-release-{number}" if is_number else "",
        guid_is_link=False,
        link=_text(release, "html_url"),
        title=Text(_text(release, "name") or tag),
        bodies=(Text(_text(release, "body_html"), is_html=True), Text(_text(release, "body"))),
        published_at=_moment(release, "published_at"),  # `created_at` is the commit's date
        updated_at=_moment(release, "updated_at"),
        authors=(_text(author, "login"),) if isinstance(author, dict) else (),
        categories=("prerelease",) if release.get("prerelease") is True else (),
        enclosures=tuple(_enclosure(one) for one in _files(release) if isinstance(one, dict)),
    )


def _files(release: Json) -> list[Any]:
    files = release.get("assets")
    return files if isinstance(files, list) else []


def _enclosure(file: Json) -> RawEnclosure:
    size = file.get("size")
    length = str(size) if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 10**15 else ""
    return RawEnclosure(_text(file, "browser_download_url"), _text(file, "content_type"), length)


def _text(fields: Json, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _moment(fields: Json, name: str) -> datetime | None:
    """Return a date in the one form in which GitHub writes them; None for any other."""
    found = read_date(_text(fields, name)[:50])
    return found if isinstance(found, datetime) else None


GITHUB_RELEASES = SourceType(
    read, GitHubReleasesConfig, "releases of a repository: https://api.github.com/repos/OWNER/NAME/releases"
)
