"""What a person does on the pages of feeds."""

from __future__ import annotations

import json
import re
import time
from itertools import count
from typing import Any

from playwright.sync_api import Dialog, Page, expect

from services.admin.actor import Scope
from services.admin.registry import NewFeed, add_feed, connect
from tests.browser.conftest import PATIENCE_MS, Complaints, OpenPage, Site
from tests.browser.feed_data import HOSTILE

_numbers = count()


def make_feeds(site: Site, number: int) -> tuple[str, list[int]]:
    """Register feeds of this test's own; return their tag and their ids."""
    tag = f"own{next(_numbers)}"
    with connect(site.database_url) as connection:
        feeds = (NewFeed(f"http://{tag}.example/{n}", name=f"{tag} {n}", tags=(tag,)) for n in range(number))
        return tag, [add_feed(connection, feed)[0] for feed in feeds]


def rows(site: Site, statement: str, *values: Any) -> list[dict[str, Any]]:
    with connect(site.database_url) as connection:
        return connection.execute(statement.encode(), values).fetchall()


def change(site: Site, statement: str, *values: Any) -> None:
    with connect(site.database_url) as connection:
        connection.execute(statement.encode(), values)


def choose_all(page: Page) -> None:
    page.get_by_label("Choose all on this page").check()


def test_a_person_finds_a_feed_and_why_it_is_late(open_page: OpenPage) -> None:
    page = open_page("/feeds", scopes=(Scope.READ,))
    page.get_by_label("Name or address").fill("late n")
    page.keyboard.press("Enter")
    expect(page.locator("#feeds tr")).to_have_count(1)
    page.get_by_role("link", name="Late News").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Late News")
    said = page.locator("#timing")
    expect(said.get_by_role("heading")).to_contain_text("It is late. It is polled next at")
    expect(said).to_contain_text("the server answered 404")
    expect(said).to_contain_text("Each failure in a row doubles the wait")
    expect(page.get_by_role("img", name="New articles by hour")).to_be_visible()


def test_a_table_is_sorted_by_its_head_and_filtered(open_page: OpenPage) -> None:
    page = open_page("/feeds?q=example")
    page.get_by_role("link", name="Failures").click()
    page.get_by_role("link", name=re.compile("Failures")).click()
    expect(page.locator('th[aria-sort="descending"]')).to_have_count(1)
    expect(page.locator("#feeds tr").first).to_contain_text("Late News")
    page.get_by_label("Health").select_option("disabled")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#feeds")).to_contain_text("Paused")


def test_chosen_feeds_are_paused_resumed_and_tagged(site: Site, open_page: OpenPage) -> None:
    tag, ids = make_feeds(site, 3)
    page = open_page(f"/feeds?tag={tag}")
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    choose_all(page)
    expect(page.locator("#chosen")).to_have_text("3 feeds chosen.")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#bulk-answer")).to_have_text("3 feeds paused.")
    expect(page.locator("#feeds .state", has_text="paused by hand")).to_have_count(3)
    assert [row["enabled"] for row in rows(site, "SELECT enabled FROM feeds WHERE id = ANY(%s)", ids)] == [False] * 3
    page.get_by_label(f"Choose {tag} 1").check()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#bulk-answer")).to_have_text("1 feed resumed.")
    page.get_by_label(f"Choose {tag} 1").check()
    page.get_by_role("button", name="Add tag").click()
    expect(page.locator("#bulk-answer")).to_have_text("Type the tag first.")
    page.locator("#bulk-tag").fill("more")
    page.get_by_role("button", name="Add tag").press("Enter")
    expect(page.locator("#bulk-answer")).to_have_text("1 feed changed.")
    expect(page.locator("#feeds")).to_contain_text("more")
    expect(page.locator("#chosen")).to_be_focused()


def test_a_feed_that_can_not_be_changed_is_named_and_stays_chosen(
    site: Site, open_page: OpenPage, complaints: Complaints
) -> None:
    tag, ids = make_feeds(site, 2)
    change(site, "UPDATE feeds SET tags = (SELECT array_agg('t' || n) FROM generate_series(1, 31) AS n) || tags"
                 " WHERE id = %s", ids[0])  # fmt: skip
    page = open_page(f"/feeds?tag={tag}")
    choose_all(page)
    page.locator("#bulk-tag").fill("more")
    page.get_by_role("button", name="Add tag").click()
    expect(page.locator("#bulk-answer")).to_have_text("1 feed changed. 1 feed not, and still chosen:")
    expect(page.locator("#bulk-problems li")).to_have_text(re.compile(f"{tag} 0: .*there would be 33 tags"))
    expect(page.locator("#chosen")).to_have_text("1 feed chosen.")
    complaints.clear()  # the browser logs the 422


def test_feeds_are_deleted_only_when_a_person_says_so_twice(site: Site, open_page: OpenPage) -> None:
    tag, ids = make_feeds(site, 2)
    page = open_page(f"/feeds?tag={tag}")
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if len(asked) > 1:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    choose_all(page)
    page.get_by_role("button", name="Delete").click()
    assert len(rows(site, "SELECT FROM feeds WHERE id = ANY(%s)", ids)) == 2
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#bulk-answer")).to_have_text("2 feeds deleted.")
    assert rows(site, "SELECT FROM feeds WHERE id = ANY(%s)", ids) == []
    assert asked[0].startswith("Delete 2 feeds, with their log and their pending articles?")


def test_the_keyboard_is_enough_to_pause_a_feed(site: Site, open_page: OpenPage) -> None:
    tag, ids = make_feeds(site, 1)
    page = open_page(f"/feeds?tag={tag}")

    def tab_to(script: str, key: str = "Tab") -> None:
        for _ in range(60):
            page.keyboard.press(key)
            if page.evaluate(f"(() => {{ const at = document.activeElement; return {script}; }})()"):
                return
        raise AssertionError(script)

    tab_to("at.name === 'feed'")
    page.keyboard.press("Space")
    tab_to("at.dataset.do === 'pause'", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#bulk-answer")).to_have_text("1 feed paused.")
    assert not rows(site, "SELECT enabled FROM feeds WHERE id = %s", ids[0])[0]["enabled"]


LISTED = """<opml version="2.0"><body>
<outline text="One" xmlUrl="http://opml-{n}.example/1"/><outline text="Two" xmlUrl="http://opml-{n}.example/2"/>
<outline text="Private" xmlUrl="http://10.0.0.1/&lt;img src=x onerror=alert(1)&gt;"/></body></opml>"""


def test_a_list_is_imported_and_what_is_refused_is_told(site: Site, open_page: OpenPage) -> None:
    page = open_page("/feeds")
    opml = LISTED.replace("{n}", str(next(_numbers))).encode()
    for expected in (
        "2 feeds added, 0 there already, 1 refused.",
        "0 feeds added, 2 there already",
    ):
        page.get_by_label("OPML, CSV").set_input_files({"name": "a.opml", "mimeType": "text/xml", "buffer": opml})
        page.get_by_role("button", name="Import").click()
        expect(page.locator("#imported")).to_contain_text(expected)
        expect(page.locator("#skipped li")).to_have_count(1)
        expect(page.locator("#skipped li")).to_contain_text("line 3")


def test_a_long_import_tells_how_far_it_is(open_page: OpenPage) -> None:
    page = open_page("/feeds")
    page.evaluate(
        """() => {
            window.said = [];
            const output = document.getElementById("imported");
            new MutationObserver(() => window.said.push(output.textContent)).observe(output, { childList: true });
        }"""
    )
    tag = f"long{next(_numbers)}"
    listed = "".join(f"http://{tag}-{n}.example/feed\n" for n in range(2500)).encode()
    page.get_by_label("OPML, CSV").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": listed})
    page.get_by_label("only say what would be done").check()
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#imported")).to_contain_text("2500 feeds would be added")
    said = page.evaluate("window.said")
    assert "1000 of 2500 read, 1000 new …" in said
    assert "2000 of 2500 read, 2000 new …" in said
    expect(page.get_by_role("progressbar")).to_be_hidden()


def test_a_broken_list_is_refused_and_read_as_far_as_possible(open_page: OpenPage, complaints: Complaints) -> None:
    outline = f'<outline text="One" xmlUrl="http://broken-{next(_numbers)}.example/1"/>'
    page = open_page("/feeds")
    page.get_by_label("OPML, CSV").set_input_files(
        {"name": "a.opml", "mimeType": "text/xml", "buffer": b"<opml><body>" + outline.encode()}
    )
    page.get_by_label("A tag for all").fill("saved")
    page.get_by_role("button", name="Import").click()
    advice = "The box “take from a broken file …” takes what can be read"
    expect(page.locator("#imported.problem")).to_contain_text(advice)
    page.get_by_label("take from a broken file").check()
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#imported")).to_contain_text("1 feed added with the tag saved, 0 there already")
    complaints.clear()  # the browser logs the 422


def test_a_feed_is_added_by_its_address(site: Site, open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page("/feeds")
    tag = f"added{next(_numbers)}"
    page.get_by_label("Address of a feed").fill(f"http://{tag}.example/feed.xml")
    page.get_by_label("Tags, with commas between").fill(f"a, {tag}")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#added")).to_contain_text("Added: ")
    (row,) = rows(site, "SELECT id, tags FROM feeds WHERE url ~ %s", tag)
    assert row["tags"] == ["a", tag]
    expect(page.locator("#added a")).to_have_attribute("href", f"/feeds/{row['id']}")
    page.get_by_label("Address of a feed").fill("ftp://x.example/")
    page.keyboard.press("Enter")
    expect(page.locator("#added.problem")).to_contain_text("ftp")
    complaints.clear()  # the browser logs the 422


def finish_fire(site: Site, feed: int, **found: Any) -> None:
    """Do what a fetcher and a writer do with the job of a fire."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < end:
        ended = rows(
            site,
            "UPDATE fire_tasks SET status = 'done', finished_at = now(), fetched = %s, new = %s, changed = 0,"
            " known = %s, outcome = 'fetched', entries = %s WHERE feed_id = %s AND status = 'running' RETURNING id",
            found["fetched"], found["new"], found["fetched"] - found["new"], json.dumps(found["entries"]), feed,
        )  # fmt: skip
        if ended:
            return
        time.sleep(0.1)
    raise AssertionError("no job came")


def test_a_feed_is_tried_and_its_entries_are_shown(site: Site, open_page: OpenPage) -> None:
    _, (feed,) = make_feeds(site, 1)
    entry = {
        "md5": "0" * 32, "url": "javascript:alert(1)", "title": HOSTILE, "published_at": "2026-11-22T12:00:00Z",
        "content_quality": "full", "flags": ["date_guessed"], "state": "new", "duplicate_of": None,
    }  # fmt: skip
    page = open_page(f"/feeds/{feed}", locale="de-DE")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#acted")).to_contain_text("ahead of the backlog")
    finish_fire(
        site,
        feed,
        fetched=2,
        new=1,
        entries=[
            entry,
            entry | {"url": "http://blank.example/", "title": "\u200b\u3164 "},
            entry | {"title": "a\u202eb\u200b \u0627\n"},
            entry | {"url": "http://a.example/", "title": "Plain"},
        ],
    )
    expect(page.locator("#acted")).to_have_text(
        "It would bring 2 entries: 1 new, 0 changed, 1 known. Nothing was written."
    )
    shown = page.locator("#tried tbody tr")
    expect(shown).to_have_count(4)
    expect(shown.nth(1)).to_contain_text("http://blank.example/")
    expect(shown.nth(2)).to_contain_text(r"a\u202eb\u200b \u0627\n".replace(r"\u0627", "\u0627"))
    expect(shown.first).to_contain_text(HOSTILE)
    expect(shown.first.locator("a")).to_have_count(0)
    expect(shown.first.locator("time")).to_have_text(re.compile(r"22\.11\.2026, 13:00"))
    expect(shown.first.locator("time")).to_have_attribute("title", "2026-11-22 12:00:00 UTC")
    expect(shown.last.get_by_role("link", name="Plain")).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_settings_are_changed_by_words_for_spans(site: Site, open_page: OpenPage, complaints: Complaints) -> None:
    tag, (feed,) = make_feeds(site, 1)
    page = open_page(f"/feeds/{feed}")
    save = page.get_by_role("button", name="Save")
    answer = page.locator("#settings output")
    save.click()
    expect(answer).to_have_text("Nothing is changed.")
    page.get_by_label("Poll exactly every").fill("often")
    save.click()
    expect(answer).to_have_text("“often” is no span: give one such as 90s, 5m, 2h or 1d")
    page.get_by_label("Poll exactly every").fill("90m")
    page.get_by_label("Name", exact=True).fill("Renamed")
    page.get_by_label("In dates such as").select_option("month")
    save.click()
    expect(answer).to_have_text("Saved.")
    (row,) = rows(site, "SELECT name, interval_seconds, date_order, tags FROM feeds WHERE id = %s", feed)
    assert row == {"name": "Renamed", "interval_seconds": 5400.0, "date_order": "month", "tags": [tag]}
    change(site, "UPDATE feeds SET name = 'Somebody else was here' WHERE id = %s", feed)
    page.get_by_label("Priority").fill("5")
    save.click()
    expect(answer).to_contain_text("Load the page again")
    complaints.clear()  # the browser logs the 412


def test_a_feed_is_paused_and_its_page_says_so_at_once(site: Site, open_page: OpenPage) -> None:
    _, (feed,) = make_feeds(site, 1)
    page = open_page(f"/feeds/{feed}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#timing")).to_contain_text("It is not polled: paused by hand.")
    page.get_by_role("button", name="Resume").press("Enter")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    expect(page.locator("#timing")).to_contain_text("It is polled next at")


def test_a_page_follows_what_happens_and_keeps_what_is_chosen(site: Site, open_page: OpenPage) -> None:
    tag, ids = make_feeds(site, 2)
    page = open_page(f"/feeds?tag={tag}")
    page.get_by_label(f"Choose {tag} 1").check()
    change(
        site, "UPDATE feeds SET failures = 3, last_outcome = 'hard_error', last_error = 'refused' WHERE id = %s", ids[1]
    )
    page.evaluate("import(document.querySelector('script[src*=\"/page.js\"]').src).then((module) => module.look())")
    expect(page.locator("#feeds")).to_contain_text("failing")
    expect(page.get_by_label(f"Choose {tag} 1")).to_be_checked()
