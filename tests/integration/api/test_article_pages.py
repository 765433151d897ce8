"""The pages of articles and consumers: what they say, with texts of people who mean no good."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from services.admin.actor import Scope
from services.admin.articles import pending as admin
from services.admin.articles.marking import MOST_WORDS, mark_differences, mark_entities
from tests.integration.api.conftest import Caller
from tests.integration.consumers.test_pending_articles import (
    Connection,
    ack,
    claim,
    connect,
    dead,
    fail,
    fill,
    let_time_pass,
)

HOSTILE = "<script>alert('1')</script>\"><img src=x onerror=alert(2)> {{ 7 * 7 }} \u202eevil \x1b[2J"


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        for number in (1, 2):
            connection.execute(
                "INSERT INTO feeds (url, politeness_group, title) VALUES (%s, 'x', %s)",
                [f"http://me:hunter2@x/{number}", f"Feed {number} <b>"],
            )
        yield connection


def change(db: Connection, md5: str, **values: Any) -> None:
    columns = ", ".join(f"{name} = %({name})s" for name in values)
    db.execute(f"UPDATE pending_articles SET {columns} WHERE md5 = %(md5)s".encode(), values | {"md5": md5})


async def page(api: httpx.AsyncClient, path: str, *, status: int = 200, **query: Any) -> str:
    answer = await api.get(path, params=query or None, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def words(html: str) -> str:
    """Return the text of a page on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def assert_harmless(html: str) -> None:
    """Check that nothing of a stranger became markup, and no link leads to a script."""
    assert "<img src=x" not in html
    assert not re.search(r"<script(?! type=\"module\" src=\"/static/)", html)
    assert not re.search(r"(?:href|src)=\"(?!/|https?://|#)[^\"]*\"", html)
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "hunter2" not in html


def keys_in(html: str) -> list[str]:
    return re.findall(r'<tr data-key="([0-9a-f]{32})"', html)


async def test_each_list_has_its_articles(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 6)
    claim(db, 4)
    fail(db, [md5s[0]], "no <b>")
    db.execute("SELECT bury_articles(%s, 'model <i> refused')", [[md5s[1]]])
    for tab, expected in {
        "pending": [*md5s[4:], md5s[0], *md5s[2:4]],
        "claimable": md5s[4:],
        "claimed": md5s[2:4],
        "waiting": md5s[:1],
        "dead": [md5s[1]],
    }.items():
        assert sorted(keys_in(await page(api, "/articles", tab=tab))) == sorted(expected), tab
    assert "model &lt;i&gt; refused" in await page(api, "/articles", tab="dead")


async def test_a_row_says_what_is_known(api: httpx.AsyncClient, db: Connection) -> None:
    first, second = fill(db, 2)
    labels = {"detected_language": "de", "topic": "sport", "duplicate_of": second, "duplicate_kind": "text"}
    change(db, first, **labels, duplicate_score=0.93, flags=["date_guessed"], published_at="2026-01-02T03:04:05Z")
    text = words(await page(api, "/articles"))
    assert "Article 1 Feed 1 <b> 2026-01-02 03:04 UTC not sure: guessed" in text
    assert "de sport by text, 93.0%" in text
    assert "the feed does not say" in text


async def test_lists_are_paged_by_key(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 120)
    seen, path = [], "/articles"
    while path:
        html = await page(api, path)
        seen += keys_in(html)
        after = re.search(r'rel="next" href="([^"]+)"', html)
        path = unescape(after.group(1)) if after else ""
    assert seen == md5s
    assert "none of this list" in words(await page(api, "/articles", status=422, cursor="nonsense"))


async def test_a_search_reads_some_articles_at_a_time(
    api: httpx.AsyncClient, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "MOST_SEARCHED", 10)
    md5s = fill(db, 35)
    wanted = [md5s[3], md5s[4], md5s[27]]
    for md5 in wanted:
        change(db, md5, topic="sport")
    claim(db, 12)  # a search goes on from those that were given out to the new ones
    let_time_pass(db)
    seen, path, looks = [], "/articles?topic=sport", 0
    while path:
        html = await page(api, path)
        seen += keys_in(html)
        looks += 1
        after = re.search(r'rel="next" href="([^"]+)"', html)
        path = unescape(after.group(1)) if after else ""
    assert (sorted(seen), looks) == (sorted(wanted), 4)


async def test_a_search_that_finds_many_is_paged(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 120)
    claim(db, 10)
    seen, path = [], "/articles?duplicates=none"
    while path:
        html = await page(api, path)
        seen += keys_in(html)
        after = re.search(r'rel="next" href="([^"]+)"', html)
        path = unescape(after.group(1)) if after else ""
    assert seen == [*md5s[10:], *md5s[:10]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"feed": "1"}, [0, 1, 2]),
        ({"feed": "2"}, [3]),
        ({"q": "article 4"}, [3]),
        ({"language": "de"}, [1]),
        ({"topic": "none"}, [0, 2, 3]),
        ({"duplicates": "any"}, [1, 2]),
        ({"duplicates": "title"}, [2]),
        ({"duplicates": "none", "feed": "1"}, [0]),
        ({"q": "nothing has this"}, []),
    ],
)
async def test_a_list_is_filtered(
    api: httpx.AsyncClient, db: Connection, query: dict[str, Any], expected: list[int]
) -> None:
    md5s = fill(db, 4)
    change(db, md5s[1], detected_language="de", topic="sport", duplicate_of=md5s[0])
    change(db, md5s[2], duplicate_of=md5s[0], duplicate_kind="title")
    change(db, md5s[3], feed_id=2)
    html = await page(api, "/articles", **query)
    assert sorted(keys_in(html)) == sorted(md5s[place] for place in expected)
    assert ("No article in this list fits" in html) == (not expected)


async def test_a_key_leads_to_its_article(api: httpx.AsyncClient, db: Connection) -> None:
    (md5,) = fill(db, 1)
    answer = await api.get("/articles", params={"q": f" {md5.upper()} "})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/articles/{md5}")
    assert "Article 1" in await page(api, f"/articles/{md5[:8]}")
    assert "no article" in words(await page(api, "/articles/" + "0" * 32, status=404))
    assert "no feed" in words(await page(api, "/articles", feed="http://unknown/", q="x"))


async def test_the_ledger_shows_what_was_acknowledged(api: httpx.AsyncClient, db: Connection) -> None:
    (md5,) = fill(db, 1)
    entry = "11111111-1111-1111-1111-111111111111"
    db.execute(
        "INSERT INTO feed_items (md5, feed_id, content_hash, url, entry_key, first_seen_at, last_seen_at)"
        " VALUES (%s, 1, 'h', 'javascript:alert(1)', %s, now(), now())",
        [md5, entry],
    )
    ack(db, [md5])
    html = await page(api, "/articles", tab="ledger", feed="1")
    assert keys_in(html) == [md5]
    alone = await page(api, f"/articles/{md5}")
    assert "A consumer has acknowledged it" in words(alone)
    assert_harmless(html + alone)
    assert "No article has come yet" in await page(api, "/articles", tab="ledger")


async def test_strangers_texts_stay_texts(api: httpx.AsyncClient, db: Connection) -> None:
    first, second = fill(db, 2)
    hostile: dict[str, Any] = dict.fromkeys(("title", "body", "author", "entry_id", "html"), HOSTILE)
    hostile |= {"language": HOSTILE[:20], "detected_language": HOSTILE[:20], "topic": HOSTILE, "flags": [HOSTILE]}
    entity = {"name": HOSTILE, "kind": HOSTILE, "id": "Q1/../x", "mentions": [{"field": "title", "start": 0, "end": 8}]}
    enclosures = [{"url": "javascript:alert(1)", "type": HOSTILE}, {"url": "http://me:hunter2@media.example/1.mp3"}]
    change(db, first, **hostile, url="javascript:alert(1)", categories=[HOSTILE], last_error=HOSTILE)
    change(db, first, entities=json.dumps([entity]), enclosures=json.dumps(enclosures), duplicate_of=second)
    for number, md5 in enumerate((second, first)):
        db.execute(
            "INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at, duplicate_of)"
            " VALUES (%s, 1, 'h', 'data:text/html,x', now(), now(), %s)",
            [md5, second if number else None],
        )
    for path in (f"/articles/{first}", f"/articles/{second}", "/articles", "/articles?tab=ledger&feed=1"):
        assert_harmless(await page(api, path))
    assert "{{ 7 * 7 }}" in await page(api, f"/articles/{first}")
    db.execute("SELECT bury_articles(%s, %s)", [[first], HOSTILE])
    for path in (f"/articles/{first}", "/articles?tab=dead", "/consumers"):
        assert_harmless(await page(api, path))
    typed = HOSTILE.partition(" \u202e")[0]
    assert_harmless(await page(api, "/articles", feed="1", q=typed, language=typed[:50], topic=typed))


async def test_entities_are_marked_by_characters(api: httpx.AsyncClient, db: Connection) -> None:
    (md5,) = fill(db, 1)
    text = "😀 <Zürich> & 𝒜cme say"
    mentions = [{"field": "body", "start": 3, "end": 9}, {"field": "body", "start": 13, "end": 17}]
    kinds = ("place", "organisation")
    found = [
        {"name": f"N{kind}", "kind": kind, "id": "Q72" if kind == "place" else None, "mentions": [mention]}
        for kind, mention in zip(kinds, mentions, strict=True)
    ]
    change(db, md5, body=text, entities=json.dumps(found))
    html = await page(api, f"/articles/{md5}")
    assert (
        '😀 &lt;<mark class="place" title="place: Nplace">Zürich</mark>&gt; &amp; '
        '<mark class="organisation" title="organisation: Norganisation">𝒜cme</mark> say'
    ).replace("<Zürich", "Zürich") in html
    assert 'href="https://www.wikidata.org/wiki/Q72"' in html


def test_mentions_that_lie_elsewhere_or_within_others_are_left_out() -> None:
    def named(*places: tuple[int, int]) -> list[dict[str, Any]]:
        return [{"name": "x", "mentions": [{"field": "title", "start": start, "end": end}]} for start, end in places]

    pieces = mark_entities("abcdef", "title", named((1, 3), (2, 4), (4, 9), (-1, 2), (5, 5), (3, 4)))
    assert [(piece.text, piece.entity is not None) for piece in pieces] == [
        ("a", False),
        ("bc", True),
        ("d", True),
        ("ef", False),
    ]
    assert mark_entities("", "title", named((0, 1))) == []


@pytest.mark.parametrize(("ours", "other"), [("", "a b"), ("x " * 9_000, "y " * 9_000), ("日本" * 900, "日本語" * 900)])
def test_a_comparison_keeps_both_beginnings(ours: str, other: str) -> None:
    pieces, others = mark_differences(ours, other)
    for given, parts in ((ours, pieces), (other, others)):
        text = "".join(part.text for part in parts)
        assert given.startswith(text)
        assert bool(text) == bool(given)
        assert len(text.split()) <= MOST_WORDS


async def test_a_story_stands_side_by_side(api: httpx.AsyncClient, db: Connection) -> None:
    first, second, third = fill(db, 3)
    change(db, first, body="The minister resigned on Monday after talks.")
    change(db, second, body="The minister resigned on Tuesday after talks.", duplicate_of=first, feed_id=2)
    for md5, of, kind in ((first, None, None), (second, first, "text"), (third, first, "title")):
        db.execute(
            "INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at, duplicate_of,"
            " duplicate_kind, duplicate_score) VALUES (%s, 1, 'h', 'http://x/', now(), now(), %s, %s, 0.9)",
            [md5, of, kind],
        )
    ack(db, [third])
    html = await page(api, f"/articles/{second}")
    assert '<mark class="differs">Monday </mark>after' in html
    assert '<mark class="differs">Tuesday </mark>after' in html
    assert "By text: nearly the same text, 90% of the shorter text" in words(html)
    of_first = words(await page(api, f"/articles/{first}"))
    assert "its text is no longer kept" in of_first
    assert "title, 90% done" in of_first


@pytest.mark.parametrize(
    ("scopes", "buttons"),
    [
        ({Scope.READ}, []),
        ({Scope.READ, Scope.CONSUME}, ["Release", "Bury"]),
        ({Scope.ADMIN}, ["Release", "Bury", "Revive"]),
    ],
)
async def test_buttons_are_those_that_the_scopes_allow(
    api: httpx.AsyncClient, db: Connection, caller: Caller, scopes: set[Scope], buttons: list[str]
) -> None:
    held, buried = fill(db, 2)
    db.execute("SELECT bury_articles(%s, 'x')", [[buried]])
    claim(db)
    caller.scopes = scopes
    html = await page(api, f"/articles/{held}") + await page(api, f"/articles/{buried}")
    assert re.findall(r"<button type=\"button\"[^>]* data-api=\"POST /api/articles/\w+\"[^>]*>(\w+)<", html) == buttons
    assert len(dead(db)) == 1


async def test_a_huge_text_makes_no_huge_page(api: httpx.AsyncClient, db: Connection) -> None:
    (md5,) = fill(db, 1)
    change(db, md5, body="<&> " * 500_000, title="t" * 2000, categories=["c" * 500] * 500)
    assert len(await page(api, f"/articles/{md5}")) < 400_000


async def test_consumers_are_told_from_each_other(api: httpx.AsyncClient, db: Connection) -> None:
    fill(db, 30)
    db.execute("SET application_name = 'indexer <b>'")
    ack(db, [row["md5"] for row in claim(db, 10)])
    fail(db, [row["md5"] for row in claim(db, 2)], "model away")
    html = await page(api, "/consumers")
    assert "indexer &lt;b&gt;" in html
    assert "Articles are drained: 10 within the last hour." in words(html)
    assert 'aria-label="Articles of the last 60 minutes: 10 acknowledged, 2 failed; 12 in the busiest minute"' in html


async def test_without_articles_nothing_waits(api: httpx.AsyncClient, db: Connection) -> None:
    assert "Nothing waits." in await page(api, "/consumers")


async def test_articles_that_nobody_drains_are_told_with_how_to_begin(api: httpx.AsyncClient, db: Connection) -> None:
    fill(db, 3)
    text = words(await page(api, "/consumers"))
    assert "Nobody drains: the oldest article has waited for 1 day" in text
    assert "How to begin" in text
    assert "claim_pending_articles(50)" in text
