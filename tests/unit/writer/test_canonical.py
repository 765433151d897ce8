from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.articles.canonical import canonical_url, duplicate_keys

ARTICLE = "https://news.example/2026/11/a-parrot"


@pytest.mark.parametrize(
    "url",
    [
        "http://news.example/2026/11/a-parrot",
        "https://www.news.example/2026/11/a-parrot/",
        "https://WWW.News.Example:443/2026/11/a-parrot",
        "http://news.example:80/2026/11/a-parrot",
        "https://m.news.example/2026/11/a-parrot",
        "https://amp.news.example/2026/11/a-parrot",
        "https://news.example/2026/11/a-parrot/amp",
        "https://news.example/2026/11/a-parrot/amp/",
        "https://news.example/amp/2026/11/a-parrot",
        "https://news.example/2026/11/a-parrot?amp=1",
        "https://news.example/2026/11/a-parrot?outputType=amp",
        "https://news.example/2026/11/a-parrot?utm_source=rss&utm_medium=feed&fbclid=x&mc_cid=1&ref=rss",
        "https://news.example/2026/11/a-parrot?UTM_Source=rss",
        "https://news.example/2026/11/a-parrot#comments",
        "https://news.example/2026/11/%61-parrot",
        "https://news-example.cdn.ampproject.org/c/s/news.example/2026/11/a-parrot",
        "https://news-example.cdn.ampproject.org/v/s/www.news.example/2026/11/a-parrot/amp",
        "https://www.google.com/amp/s/news.example/2026/11/a-parrot",
    ],
)
def test_all_addresses_of_one_article_have_one_form(url: str) -> None:
    assert canonical_url(url) == canonical_url(ARTICLE)


@pytest.mark.parametrize(
    "url",
    [
        "https://news.example/2026/11/A-parrot",
        "https://news.example/2026/11/a-parrot-again",
        "https://news.example/2026/11/a-parrot?page=2",
        "https://news.example:8080/2026/11/a-parrot",
        "https://other.example/2026/11/a-parrot",
        "https://sport.news.example/2026/11/a-parrot",
        "https://news.example/2026/11/a-parrot#!/gallery",
        "https://news.example/2026/11/a%2Fparrot",
        "https://amplifier.news.example/2026/11/a-parrot",
        "https://news.example/amplify/2026/11/a-parrot",
    ],
)
def test_other_articles_have_other_forms(url: str) -> None:
    assert canonical_url(url) != canonical_url(ARTICLE)


def test_arguments_that_tell_which_article_are_sorted() -> None:
    assert canonical_url("http://a.example/?p=1&b=&utm_term=x") == canonical_url("https://a.example?b=&p=1")
    assert canonical_url("http://a.example/story.amp.html") == canonical_url("http://a.example/story.html")
    assert canonical_url("http://m.example/x") != canonical_url("http://example/x")  # a name of two parts has no front


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://news.example",
        "http://www.news.example/?utm_source=x#top",
        "ftp://a.example/x",
        "http:///x",
        "http://[x/y",
    ],
)
def test_a_front_page_or_no_address_is_no_article(url: str) -> None:
    assert canonical_url(url) is None


def test_an_address_that_several_entries_of_a_feed_share_gives_no_key() -> None:
    urls = [
        "http://a.example/1",
        "http://a.example/list#1",
        "https://a.example/list/?utm_source=x",
        "http://a.example/",
    ]
    found = duplicate_keys(urls, range(4))
    assert found.keys() == {0}
    assert duplicate_keys(urls, [2]) == {}
    assert duplicate_keys(["https://www.a.example/1?utm_source=x"], [0]) == found
    assert duplicate_keys(["http://a.example/?p=1", "http://a.example/?p=2"], [1]).keys() == {1}


@given(st.text(max_size=60) | st.text(max_size=60).map(lambda text: f"http://a.example/{text}"))
def test_whatever_the_address_is_the_form_is_stable(url: str) -> None:
    form = canonical_url(url)
    if form is not None:
        assert canonical_url(f"https://{form}") == form
