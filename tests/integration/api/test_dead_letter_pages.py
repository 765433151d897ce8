"""The page of dead letters, on a real broker: what it says of letters whose headers and bodies may hold anything."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pydantic import AmqpDsn

from services.admin.actor import Scope
from services.api.resources import Resources
from shared.broker.port import Publication
from tests.factories import make_job
from tests.integration.api.conftest import Caller
from tests.integration.api.test_article_pages import HOSTILE, assert_harmless, page, words

JOB, STRANGER, OTHER = ("a" * 32, "b" * 32, "<i>\"'& c")


@pytest.fixture(autouse=True)
async def letters(resources: Resources) -> None:
    topology = resources.topology
    job = make_job(feed_id=7, source_config={"headers": {"X-Key": "hunter2"}, "password": "hunter2"})
    body, encoding = job.encode()
    died = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    headers: dict[str, str | int] = {"reason": "exhausted", "error": "Bug: http://me:hunter2@x/", "feed_id": 7}
    hostile = HOSTILE.replace("\x1b", "")
    strange: dict[str, str | int] = {"reason": hostile, "error": hostile, "feed_id": hostile, "died_at": hostile}
    async with resources.broker().connect(topology) as session:
        writers: dict[str, str | int] = {"reason": "undecodable", "feed_id": -1}
        for queue, content, coding, about, id_ in (
            (topology.fetcher.dead, body, encoding, headers | {"died_at": died}, JOB),
            (topology.fetcher.dead, HOSTILE.encode(), None, strange, STRANGER),
            (topology.writer.dead, b"{}", None, writers, OTHER),
        ):
            await session.publish(Publication(queue, content, "feedmill", "feed.fetch.v1", coding, about, id_))
        async with asyncio.timeout(30):
            while await session.count_ready(topology.fetcher.dead) != 2:
                await asyncio.sleep(0.02)


async def test_letters_are_listed_by_queue_with_reason_feed_and_age(api: httpx.AsyncClient) -> None:
    html = await page(api, "/dead-letters")
    assert_harmless(html)
    text = words(html)
    assert "Of the fetcher 2" in text
    assert "Of the writer 1" in text
    assert "exhausted Bug: http://***@x/ feed 7 feed.fetch.v1 2 h" in text
    assert 'href="/feeds/7"' in html
    assert "Of the enricher" not in text
    assert "None of these letters has this text" in await page(api, "/dead-letters", q="nothing")


async def test_a_letter_is_readable_and_has_no_secret(api: httpx.AsyncClient) -> None:
    html = await page(api, "/dead-letters", letter=JOB)
    assert_harmless(html)
    text = words(html)
    assert '"feed_id": 7' in text
    assert '"password": "***"' in text
    assert "an error, five times: repair what the error says" in text
    for id_ in (STRANGER, OTHER):
        html = await page(api, "/dead-letters", letter=id_)
        assert_harmless(html)
        assert 'id="letter"' in html
    assert "There is no dead letter ffff" in words(await page(api, "/dead-letters", letter="ffff"))


@pytest.mark.parametrize(("scope", "may"), [(Scope.READ, False), (Scope.WRITE, False), (Scope.ADMIN, True)])
async def test_only_an_admin_gets_buttons(api: httpx.AsyncClient, caller: Caller, scope: Scope, may: bool) -> None:
    caller.scopes = {scope}
    html = await page(api, "/dead-letters", letter=JOB)
    assert bool(re.search(r"<button[^>]*(?:purge|requeue)", html)) == may
    assert ('type="checkbox"' in html) == may


async def test_without_a_broker_the_page_says_so(api: httpx.AsyncClient, resources: Resources) -> None:
    away = AmqpDsn("amqp://127.0.0.1:1/")
    resources.settings = resources.settings.model_copy(update={"amqp_url": away})
    assert "RabbitMQ is away" in words(await page(api, "/dead-letters", status=503))
