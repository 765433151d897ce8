"""Feeds are added by the address of a page that links to several."""

from __future__ import annotations

import socket

from playwright.sync_api import expect

from services.admin.registry import connect
from tests.browser.conftest import Complaints, OpenPage, Site
from tests.integration.fetcher.raw_server import answer, serving

PAGE = b"""<html><head>
<link rel="alternate" type="application/rss+xml" title="Posts &lt;img src=x onerror=alert(1)&gt;" href="/posts.xml">
<link rel="alternate" type="application/rss+xml" title="Comments" href="/comments.xml"></head></html>"""

FEED = b"""<rss version="2.0"><channel><title>News</title><link>http://site.example/</link>
<item><title>One</title><link>http://site.example/1</link></item></channel></rss>"""


def site_with_feeds(connection: socket.socket, head: str) -> None:
    is_page = head.startswith("GET / ")
    kind = "text/html" if is_page else "application/rss+xml"
    connection.sendall(answer(body=PAGE if is_page else FEED, Content_Type=kind, Connection="close"))


def test_of_the_feeds_of_a_page_a_person_chooses_one(site: Site, open_page: OpenPage, complaints: Complaints) -> None:
    with serving(site_with_feeds) as stranger:
        page = open_page("/feeds")
        page.get_by_label("Address of a feed").fill(stranger.url("/"))
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#added")).to_have_text("This page links to 2 feeds. Choose one:")
        expect(page.locator("#candidates")).to_contain_text("Posts <img src=x onerror=alert(1)>")
        page.locator("#candidates").get_by_role("button", name="Comments").click()
        expect(page.locator("#added")).to_contain_text("Added: ")
        with connect(site.database_url) as connection:
            found = connection.execute("SELECT url FROM feeds WHERE url ~ %s", [f":{stranger.port}/"]).fetchall()
        assert [row["url"] for row in found] == [stranger.url("/comments.xml")]
    complaints.clear()  # the browser logs the 409
