"""The source type `github_releases`.

`releases.json` has the members and the nulls of real answers (api.github.com, 2018 and 2025: names and bodies that are
null, drafts without a date of publication), cut to what a reader may look at; its repository is made up.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.http.options import BadOptions
from services.fetcher.parse.model import OutOfTime
from services.fetcher.sources import NotAFeed, ReadContext, Reading, Unparseable, find_source_type
from services.fetcher.sources.github_releases import GITHUB_RELEASES, MAX_CONTAINERS, GitHubReleasesConfig, read
from tests.factories import NOW

RELEASES = (Path(__file__).parent / "releases.json").read_bytes()
URL = "https://api.github.com/repos/example/mill/releases"


def context(**config: Any) -> ReadContext[GitHubReleasesConfig]:
    return ReadContext(URL, "application/json", NOW, GITHUB_RELEASES.read_config(config))


def reading(document: object, **config: Any) -> Reading:
    return read(json.dumps(document).encode(), context(**config))


def test_it_is_installed() -> None:
    assert find_source_type("github_releases") is GITHUB_RELEASES


def test_published_releases_become_entries_with_their_files() -> None:
    found = read(RELEASES, context())
    assert (found.feed.title, found.feed.site_url) == ("mill releases", "https://github.com/example/mill")
    release, stones = found.entries
    assert (release.entry_id, release.id_is_given) == ("github-release-400002", True)
    assert (release.title, release.author) == ("v1.4.2", "ada")
    assert release.url == "https://github.com/example/mill/releases/tag/v1.4.2"
    assert release.body == "## Fixed\n- A crash with `<empty>` files & names (#12)"
    assert release.published_at == datetime(2026, 10, 29, 2, 40, 20, tzinfo=UTC)
    assert release.updated_at == datetime(2026, 10, 30, tzinfo=UTC)
    assert [(file["type"], file["length"]) for file in map(_plain, release.enclosures)] == [
        ("application/octet-stream", 104851),
        ("application/x-gzip", 85516),
    ]
    assert (stones.title, stones.body, stones.author) == ("Stones 1.0", "First release", None)
    assert [entry.flags for entry in found.entries] == [(), ()], "their dates are sure"


def _plain(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else value.model_dump()


def test_pre_releases_are_for_those_who_ask_and_drafts_for_nobody() -> None:
    titles = [entry.title for entry in read(RELEASES, context(prereleases=True)).entries]
    assert titles == ["v2.0.0-rc.1", "v1.4.2", "Stones 1.0"]
    (first, *_) = read(RELEASES, context(prereleases=True)).entries
    assert first.categories == ("prerelease",)


@pytest.mark.parametrize(
    ("pattern", "titles"), [("v1.*", ["v1.4.2"]), ("stones/*", ["Stones 1.0"]), ("*", ["v1.4.2", "Stones 1.0"])]
)
def test_a_pattern_chooses_tags(pattern: str, titles: list[str]) -> None:
    assert [entry.title for entry in read(RELEASES, context(tags=pattern)).entries] == titles


def test_an_id_stays_when_tag_and_repository_are_renamed() -> None:
    renamed = json.loads(RELEASES.replace(b"example/mill", b"other/grinder").replace(b"v1.4.2", b"1.4.2"))
    assert [entry.entry_id for entry in reading(renamed).entries] == [
        entry.entry_id for entry in read(RELEASES, context()).entries
    ]


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"prereleases": "yes"}, "prereleases: expected true or false"),
        ({"tags": ""}, "tags: expected a pattern"),
        ({"tags": "a" * 101}, "tags: expected a pattern"),
        ({"tags": "a b"}, "tags: expected a pattern"),
    ],
)
def test_settings_are_checked(config: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadOptions, match=complaint):
        GITHUB_RELEASES.read_config(config)


def test_a_repository_without_releases_is_an_empty_feed() -> None:
    assert reading([]).entries == ()


@pytest.mark.parametrize(
    ("body", "error", "complaint"),
    [
        (b'{"message": "Not Found", "status": "404"}', NotAFeed, "GitHub's message 'Not Found'"),
        (b"<!DOCTYPE html><p>Hello", NotAFeed, "no JSON"),
        (b"", NotAFeed, "no JSON"),
        (b'[{"tag_name"', Unparseable, "no JSON"),
        (b'[{"name": "v1", "commit": {}}]', NotAFeed, "without releases"),
        (b"17", NotAFeed, "no list of releases"),
        (b"[" * 100_000, Unparseable, "nested too deep|no JSON"),
        (b"[" + b"{}," * MAX_CONTAINERS + b"{}]", Unparseable, "more objects"),
        (b"[" + b"9" * 10_000 + b"]", Unparseable, "no JSON"),
    ],
)
def test_what_is_no_list_of_releases_is_named(body: bytes, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        read(body, context())


def test_it_ends_when_its_time_is_up() -> None:
    late = ReadContext(URL, None, NOW, GitHubReleasesConfig(), deadline=lambda: True)
    with pytest.raises(OutOfTime):
        read(RELEASES, late)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["2026-01-01T00:00:00Z"])
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
MEMBERS = ("id", "name", "html_url", "body", "body_html", "author", "assets")
DATES = ("created_at", "published_at", "updated_at")
FILE = st.fixed_dictionaries(dict.fromkeys(("browser_download_url", "content_type", "size"), JSON))
RELEASE = st.fixed_dictionaries(
    {"tag_name": JSON, "draft": JSON, "prerelease": JSON},
    optional={**dict.fromkeys((*MEMBERS, *DATES), JSON), "assets": JSON | st.lists(FILE)},
)


@given(document=JSON | st.lists(RELEASE | JSON), pattern=st.text("[]!*?-a1\\^", min_size=1, max_size=20))
def test_any_json_is_read_or_refused(document: Any, pattern: str) -> None:
    try:
        found = reading(document, prereleases=True, tags=pattern)
    except (NotAFeed, Unparseable):
        return
    for entry in found.entries:
        json.loads(entry.model_dump_json())


@given(body=st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises((NotAFeed, Unparseable)):
        read(b"\xff" + body, context())
