"""Lists are imported in chunks, into a real database: what it costs, what happens side by side and after a crash."""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

from services.admin.feeds.tags import clean_tag, merge_tags
from services.admin.registry import Connection, NewFeed, add_feed, connect
from services.admin.subscriptions import importing
from services.admin.subscriptions.exporting import export_feeds
from services.admin.subscriptions.first_polls import AT_ONCE, PER_SECOND
from services.admin.subscriptions.importing import Import, Imported, Rules
from services.admin.subscriptions.model import Format, Listed
from services.admin.subscriptions.reading import open_list
from services.admin.subscriptions.rules import Reason, Skipped
from tests.integration.waiting import BLOCKED

RULES = Rules(allowed=(), proxy_hosts=frozenset(), interval_of=lambda _: 1.0)


def listed(*numbers: int, tags: tuple[str, ...] = ()) -> list[Listed]:
    return [Listed(line, f"http://f{n}.example/feed", f"Feed {n}", tags) for line, n in enumerate(numbers, 1)]


def run(
    connection: Connection,
    feeds: list[Listed],
    rules: Rules = RULES,
    report: Callable[[Skipped], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Imported:
    connection.commit()
    return Import(connection, rules, report).run(feeds, progress)


def rows(connection: Connection, columns: str = "*") -> list[dict[str, Any]]:
    statement = f"SELECT {columns}, next_fetch_at - created_at AS wait FROM feeds ORDER BY id"
    found = connection.execute(statement.encode()).fetchall()
    connection.commit()
    return found


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as opened:
        opened.commit()
        yield opened


class Counting(psycopg.Connection[dict[str, Any]]):
    statements = 0

    def execute(self, *arguments: Any, **options: Any) -> Any:
        self.statements += 1
        return super().execute(*arguments, **options)


def test_a_thousand_feeds_are_three_statements(database_url: str) -> None:
    feeds = listed(*range(4_500), tags=("a", "b"))
    with Counting.connect(database_url, row_factory=dict_row) as connection:
        assert run(connection, feeds).added == 4_500
        assert connection.statements <= 3 * 5
        connection.statements = 0
        again = run(connection, feeds)
        assert (again.added, again.tagged, again.skipped[Reason.ALREADY_THERE]) == (0, 0, 4_500)
        assert connection.statements <= 2 * 5
        connection.statements = 0
        assert run(connection, [*listed(*range(4_500), tags=("c",))]).tagged == 4_500
        assert connection.statements <= 5 * 5


def test_nothing_is_due_in_the_same_second_beyond_a_handful(connection: Connection) -> None:
    run(connection, listed(*range(3000)))
    waits = [row["wait"].total_seconds() for row in rows(connection, "id")]
    assert sum(wait < 1.0 for wait in waits) <= AT_ONCE + PER_SECOND
    assert max(waits) == pytest.approx((3000 - AT_ONCE) / PER_SECOND, abs=2.0)


def test_feeds_of_one_host_keep_their_distance(connection: Connection) -> None:
    run(connection, [Listed(n, f"http://one.example/{n}") for n in range(5)])
    waits = sorted(row["wait"].total_seconds() for row in rows(connection, "id"))
    assert [round(after - before, 3) for before, after in pairwise(waits)] == [1.0] * 4


def test_a_feed_that_is_there_keeps_all_it_has_and_gets_tags(connection: Connection) -> None:
    add_feed(connection, NewFeed("http://f1.example/feed", name="Mine", priority=3, tags=("News",)))
    before = rows(connection)
    skipped: list[Skipped] = []
    done = run(connection, listed(1, 2, tags=("NEWS", "b")), report=skipped.append)
    after = rows(connection)
    assert (done.added, done.tagged) == (1, 1)
    assert after[0] == before[0] | {"tags": ["News", "b"], "tag_keys": ["news", "b"]}
    assert (after[1]["name"], after[1]["tags"], after[1]["politeness_group"]) == ("Feed 2", ["NEWS", "b"], "f2.example")
    assert [(each.line, each.reason) for each in skipped] == [(1, Reason.ALREADY_THERE)]


@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_a_feed_in_several_folders_gets_all_their_tags(
    connection: Connection, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", chunk)
    url = "http://a.example/feed"
    feeds = [Listed(7, url, tags=("a",)), Listed(7, url, tags=("b",)), Listed(9, f"{url}#x", tags=("c", "A"))]
    skipped: list[Skipped] = []
    done = run(connection, feeds, report=skipped.append)
    assert (done.listed, done.added, done.refused) == (3, 1, 0)
    assert [(each.line, each.reason, each.detail) for each in skipped] == [
        (line, Reason.DUPLICATE, "the feed of line 7 again") for line in (7, 9)
    ]
    assert [row["tags"] for row in rows(connection)] == [["a", "b", "c"]]
    assert run(connection, feeds).tagged == 0


def test_a_dry_run_says_the_same_and_writes_nothing(connection: Connection) -> None:
    run(connection, listed(1, tags=("a",)))
    before = rows(connection)
    feeds = [*listed(1, 2, 2, tags=("b",)), Listed(9, "ftp://x.example/")]
    dry = run(connection, feeds, Rules((), frozenset(), lambda _: 1.0, dry_run=True))
    assert rows(connection) == before
    assert run(connection, feeds) == dry
    assert (dry.added, dry.tagged, dry.refused) == (1, 1, 1)


def test_an_import_that_dies_leaves_whole_chunks_and_a_second_one_adds_the_rest(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", 10)
    feeds = listed(*range(35), tags=("a",))

    def die(read: int) -> None:
        if read == 20:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run(connection, feeds, progress=die)
    assert len(rows(connection)) == 20
    done = run(connection, feeds)
    assert (done.added, done.skipped[Reason.ALREADY_THERE]) == (15, 20)
    assert [row["tags"] for row in rows(connection)] == [["a"]] * 35


def test_many_imports_at_once_neither_double_nor_deadlock(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "CHUNK", 15)

    def work(number: int) -> Imported:
        numbers = random.Random(number).sample(range(120), 120)
        with connect(database_url) as connection:
            return run(connection, listed(*numbers, tags=(f"t{number}",)))

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(work, range(4)))
    with connect(database_url) as connection:
        found = rows(connection, "url, tags")
    assert sum(each.added for each in done) == len(found) == 120
    assert all(sorted(row["tags"]) == ["t0", "t1", "t2", "t3"] for row in found)


def test_a_writer_that_moves_a_feed_to_a_listed_url_is_no_deadlock(database_url: str, connection: Connection) -> None:
    """The writer holds the feed's row and the new URL; the import waits for the URL and holds no row."""
    old, new = "http://f1.example/feed", "http://f2.example/feed"
    add_feed(connection, NewFeed(old))
    connection.commit()
    with psycopg.connect(database_url) as writer, psycopg.connect(database_url, autocommit=True) as watcher:
        writer.execute("SELECT FROM feeds FOR NO KEY UPDATE")
        writer.execute("UPDATE feeds SET url = %s", [new])
        done: list[Imported] = []
        importer = threading.Thread(target=lambda: done.append(run(connection, listed(1, 2, 3, tags=("a",)))))
        importer.start()
        end = time.monotonic() + 30
        while not watcher.execute(BLOCKED).rowcount and time.monotonic() < end:
            time.sleep(0.01)
        writer.commit()
        importer.join(30)
    assert done[0].added == 1
    assert [(row["url"], row["tags"]) for row in rows(connection)] == [(new, ["a"]), ("http://f3.example/feed", ["a"])]


TAG = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=12).filter(
    lambda text: text.strip("/ ") and not text.isspace()
)
FEED = st.tuples(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    st.lists(TAG, max_size=4),
    st.sampled_from([None, "http://site.example/?a=1&b=2", "https://site.example/"]),
)


def clean_tags(texts: list[str]) -> tuple[str, ...]:
    return tuple(merge_tags((), (clean_tag(text) for text in texts if "".join(text.split()).strip("/"))))


def export(connection: Connection, form: Format) -> str:
    out = io.StringIO()
    export_feeds(connection, out, form)
    connection.commit()
    return out.getvalue()


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(feeds=st.lists(FEED, max_size=6))
def test_what_is_exported_imports_as_the_same_feeds(
    connection: Connection, feeds: list[tuple[str, list[str], str | None]]
) -> None:
    for form in (Format.OPML, Format.CSV):
        connection.execute("TRUNCATE feeds CASCADE")
        for number, (name, tags, site_url) in enumerate(feeds):
            url = f"http://f{number}.example/feed?a=1&copy=2"
            add_feed(connection, NewFeed(url, name=name or None, tags=clean_tags(tags), site_url=site_url))
        before = [(row["url"], sorted(row["tags"]), row["site_url"]) for row in rows(connection)]
        exported = export(connection, form)
        connection.execute("TRUNCATE feeds CASCADE")
        if not feeds:
            continue
        opened = open_list(io.BytesIO(exported.encode()))
        assert (opened.format, opened.flaws.in_order) == (form, [])
        run(connection, list(opened.read()))
        assert export(connection, form) == exported
        after = sorted((row["url"], sorted(row["tags"]), row["site_url"]) for row in rows(connection))
        assert after == sorted(before)
