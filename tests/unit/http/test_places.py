"""Where a request goes: plain URLs are read without httpx, and mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.http.client import _PLAIN, _parse, find_place
from services.fetcher.http.redirects import check_url
from shared.politeness import BadUrl

HOSTS = ("example.org", "127.0.1.7", "1.2", "a.b-c.", "127.1", "xn--bcher-kva.de", "a..b", "-a", "0x7f.1", "EX.org")
PORTS = ("", ":80", ":443", ":8080", ":080", ":99999", ":")
URLS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(("http://", "https://", "HTTP://", "https://me:secret@")),
    st.sampled_from(HOSTS),
    st.sampled_from(PORTS),
    st.just("") | st.text("abz019.-_~/?=&+:%#@ A;,\u00e9", max_size=12).map(lambda rest: f"/{rest}"),
)


@given(URLS)
def test_a_plain_url_means_what_httpx_reads_in_it(url: str) -> None:
    try:
        expected = _parse(url, check_url(url))
    except BadUrl:
        with pytest.raises(BadUrl):
            find_place(url)
    else:
        assert find_place(url) == expected


@pytest.mark.parametrize(
    "url",
    ["https://example.org", "http://news.example.org:8080/feeds/all.xml", "https://a.example/rss?format=xml&n=20+1"],
)
def test_most_urls_are_plain(url: str) -> None:
    assert _PLAIN.fullmatch(url)


@pytest.mark.parametrize(
    "url", ["http://EX.org/", "http://a.example/../x", "http://me@a.example/", "http://a.example/%C3"]
)
def test_urls_that_httpx_may_change_are_not_plain(url: str) -> None:
    assert not _PLAIN.fullmatch(url)
