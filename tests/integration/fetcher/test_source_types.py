"""A source type that another distribution brings: registered, fetched, read. No service knows its name."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.fetcher.attempt import FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.options import BadOptions
from services.fetcher.request import prepare_request
from services.fetcher.sources import find_source_type, load_source_types
from services.fetcher.sources.feed import FEED
from services.scheduler.store import claim_due_feeds
from shared.database.postgres import Database
from shared.errors import ConfigurationError
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job
from tests.integration.fetcher.raw_server import answer, saying, serving
from tests.integration.fetcher.toy_sitemap import SITEMAP

PAGES = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://site.example/news/a-new-page</loc><lastmod>2026-11-20T10:00:00+00:00</lastmod></url>
<url><loc>https://site.example/about/us</loc><lastmod>2020-01-01T00:00:00+00:00</lastmod></url></urlset>"""

TOY = "tests.integration.fetcher.toy_sitemap:SITEMAP"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution that registers source types."""

    def install(name: str, **points: str) -> None:
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[feedmill.source_types]", *lines]))
        monkeypatch.syspath_prepend(tmp_path)
        load_source_types.cache_clear()

    yield install
    load_source_types.cache_clear()


async def test_a_feed_of_an_installed_source_type_is_registered_claimed_fetched_and_read(
    install: Install, database: Database, database_url: str
) -> None:
    install("toy", toy_sitemap=TOY)
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    fetcher = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), FetchLimits())
    with serving(saying(answer(body=PAGES))) as server:
        config = {"section": "news", "headers": {"X-Key": "k"}}
        with connect(database_url) as connection:
            add_feed(connection, NewFeed(server.url("/sitemap.xml"), source_type="toy_sitemap", config=config))
        async with database.transaction() as transaction:
            (job,) = (await claim_due_feeds(transaction, limit=1, claim_seconds=60.0)).jobs
        found, report = fetcher.make_request(prepare_request(job, frozenset()), lambda: None)
        (asked,) = server.requests
    client.close()
    assert isinstance(found, FeedFetched)
    assert (found.outcome, report.succeeded) == (Outcome.FETCHED, True)
    assert [(entry.url, entry.title) for entry in found.entries] == [
        ("https://site.example/news/a-new-page", "a new page")
    ]
    assert found.feed.title == "The & site"
    assert "X-Key: k" in asked, "what requests need is the same for all source types"


def test_what_its_reader_cannot_read_ends_as_that_of_a_feed(install: Install) -> None:
    install("toy", toy_sitemap=TOY)
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    fetcher = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), FetchLimits())
    for body, outcome in ((b"<rss/>", Outcome.NOT_A_FEED), (b"<urlset", Outcome.UNPARSEABLE)):
        with serving(saying(answer(body=body))) as server:
            job = make_job(url=server.url(), source_type="toy_sitemap")
            found, _ = fetcher.make_request(prepare_request(job, frozenset()), lambda: None)
        assert isinstance(found, FeedFetched)
        assert found.outcome is outcome
    client.close()


def test_its_settings_are_checked_when_a_feed_is_registered(install: Install, database_url: str) -> None:
    install("toy", toy_sitemap=TOY)
    feed = NewFeed("https://site.example/map", source_type="toy_sitemap", config={"section": "x" * 21})
    with (
        connect(database_url) as connection,
        pytest.raises(ConfigurationError, match=r"section: expected a part of the path, of at most 20 characters"),
    ):
        add_feed(connection, feed)


def test_our_own_is_registered_like_any_other(install: Install) -> None:
    install("toy", toy_sitemap=TOY)
    assert load_source_types().items() >= {"feed": FEED, "toy_sitemap": SITEMAP}.items()


def test_an_unknown_one_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        BadOptions, match=r"'pigeon' is not installed here \(installed: [\w, ]*feed[\w, ]*\); install the package"
    ):
        find_source_type("pigeon")


@pytest.mark.parametrize(
    ("points", "complaint"),
    [
        ({"feed": TOY}, "'feed' is registered twice"),
        ({"late": "nowhere:LATE"}, "'late' .* can't be loaded: No module named 'nowhere'"),
        ({"odd": "tests.integration.fetcher.toy_sitemap:NAMES"}, "'odd' .* is no SourceType"),
    ],
)
def test_a_package_that_brings_no_proper_source_type_is_named(
    install: Install, points: dict[str, str], complaint: str
) -> None:
    install("toy", **points)
    with pytest.raises(ConfigurationError, match=complaint):
        load_source_types()


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "extend.md"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the documentation, built and installed into a directory."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("\n## A source type") : text.index("\n## A stage")]
    (toml,) = re.findall(r"^```toml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    (module,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len((toml + module).splitlines()) <= 30, "the page promises a short one"
    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "pyproject.toml").write_text(toml)
    (source / "feedmill_quakes.py").write_text(module)
    offline = ["--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, "--target", target, source], check=True)
    monkeypatch.syspath_prepend(target)
    load_source_types.cache_clear()
    yield target
    load_source_types.cache_clear()


def test_the_package_of_the_documentation_is_installed_shown_and_reads(package: Path) -> None:
    command = [sys.executable, "-m", "services.cli", "sources", "quakes", "--json"]
    environment = os.environ | {"PYTHONPATH": str(package)}
    shown = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert (shown["package"], shown["version"]) == ("feedmill-quakes", "1.0")
    assert shown["config_schema"]["properties"]["magnitude"]["type"] == "number"
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    fetcher = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), FetchLimits())
    quakes = [
        {"id": f"us{mag}", "properties": {"mag": mag, "time": 1_700_000_000_000, "url": f"https://q.example/{mag}",
         "title": f"M {mag}"}}
        for mag in (4.9, 6.1)
    ]  # fmt: skip
    bodies = {
        json.dumps({"features": quakes}).encode(): Outcome.FETCHED,
        b'{"features": [{"id": 1, "properties": {"mag": 9, "time": 1e300, "url": 1}}]}': Outcome.UNPARSEABLE,
        b"[" * 100_000: Outcome.UNPARSEABLE,
        b"<rss/>": Outcome.UNPARSEABLE,
    }
    for body, outcome in bodies.items():
        with serving(saying(answer(body=body))) as server:
            job = make_job(url=server.url(), source_type="quakes", source_config={"magnitude": 5})
            found, _ = fetcher.make_request(prepare_request(job, frozenset()), lambda: None)
        assert isinstance(found, FeedFetched)
        assert found.outcome is outcome, found.error
        if outcome is Outcome.FETCHED:
            (entry,) = found.entries
            assert (entry.entry_id, entry.title, entry.url) == ("us6.1", "M 6.1", "https://q.example/6.1")
    client.close()
