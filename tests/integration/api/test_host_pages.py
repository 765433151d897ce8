"""The pages of hosts: who is left alone until when and why, whose shard, jobs under way, its feeds."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from services.admin.registry import NewFeed
from services.api.pages import hosts as hosts_page
from services.api.resources import Resources
from tests.integration.api.test_feed_pages import EVIL, read, urls, words
from tests.integration.api.test_polling import change, log, register


async def test_without_feeds_there_are_no_hosts(api: httpx.AsyncClient) -> None:
    assert "There are no hosts yet" in words(await read(api, "/hosts"))


async def test_those_that_are_left_alone_stand_first_with_their_reason(
    api: httpx.AsyncClient, database_url: str
) -> None:
    register(database_url, *(NewFeed(f"http://{name}.example/feed") for name in ("calm", "asked", "down")))
    assert "No host is throttled or down now" in words(await read(api, "/hosts"))
    change(
        database_url,
        "INSERT INTO throttled_groups VALUES ('asked.example', '2100-01-01T12:00Z');"
        " UPDATE feeds SET last_outcome = 'soft_error', failures = 2, last_attempt_at = now(),"
        " last_error = 'connection refused' WHERE id = 3",
    )
    log(database_url, timedelta(minutes=1), "soft_error", feed=3)
    page = words(await read(api, "/hosts"))
    assert "asked.example is throttled until 2100-01-01 12:00 UTC : it asked for a pause" in page
    assert "down.example is down until" in page
    assert "It is throttled until 2100-01-01 12:00 UTC" in words(await read(api, "/hosts/asked.example"))
    down = words(await read(api, "/hosts/down.example"))
    assert "It is down until" in down
    assert "failed, will be retried (connection refused), 2 in a row" in down
    assert "It may be asked. well" in words(await read(api, "/hosts/calm.example"))


async def test_hosts_are_searched_and_paged(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_page, "PAGE_HOSTS", 2)
    register(database_url, *(NewFeed(f"http://h{n}.example/feed") for n in range(5)))
    found: list[str] = []
    path = "/hosts?q=EXAMPLE&state="
    while path:
        page = urls(await read(api, path))
        found += [url for url in page if url.startswith("/hosts/")]
        path = next((url for url in page if "cursor=" in url), "")
    assert found == [f"/hosts/h{n}.example" for n in range(5)]
    assert "No host fits" in words(await read(api, "/hosts", q="nothing"))


async def test_a_host_tells_its_shard_its_jobs_and_its_feeds(
    api: httpx.AsyncClient, resources: Resources, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_page, "HOST_FEEDS", 2)
    register(database_url, *(NewFeed(f"http://a.example/{n}", name=f"Feed {n}") for n in range(1, 4)))
    change(
        database_url,
        "UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour',"
        " issued_at = now() - interval '5 minutes' WHERE id = 2",
    )
    page = await read(api, "/hosts/a.example")
    shard = resources.topology.fetcher.queue_of("a.example")
    assert f"Its jobs go through the queue {shard} . It is not declared" in words(page)
    assert "Feed 2 5 minutes ago" in words(page)
    following = next(url for url in urls(page) if "cursor=" in url)
    assert "/feeds?host=a.example" in urls(page)
    assert "Feed 1" in words(await read(api, following))


async def test_a_shard_that_nobody_reads_is_told(
    api: httpx.AsyncClient, resources: Resources, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/1"))
    async with resources.broker().connect(resources.topology):
        pass  # declares the queues
    assert "Nobody reads it , and 0 jobs wait there: is a fetcher running?" in words(
        await read(api, "/hosts/a.example")
    )
    assert "nobody reads it" in words(await read(api, "/hosts"))


async def test_a_name_of_a_stranger_is_no_code(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/1", name=EVIL))
    change(database_url, "UPDATE feeds SET politeness_group = %s", f"a.example/{EVIL}?#x")
    page = await read(api, "/hosts")
    assert "<script>alert" not in page
    path = next(url for url in urls(page) if url.startswith("/hosts/"))
    host = await read(api, path)
    assert "<script>alert" not in host
    assert EVIL in words(host)
