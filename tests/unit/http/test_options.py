from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from services.fetcher.http.options import BadOptions, OwnHeaders, RequestConfig, read_config

ORIGIN = "http://news.example/feed"
OWN = RequestConfig(headers={"X-Key": "k"}, user="me", password="pass", timeout_seconds=20.0)
OWN_HEADERS = OwnHeaders({"X-Key": "k"}, ("me", "pass"))


def read(config: Mapping[str, object]) -> RequestConfig:
    return read_config(RequestConfig, config)


def test_nothing_asked_for_is_nothing() -> None:
    assert read({}) == RequestConfig()
    assert read({"headers": None, "user": None, "timeout_seconds": None, "mode": [1]}) == RequestConfig()
    assert RequestConfig().for_url(ORIGIN, ORIGIN) == OwnHeaders()


def test_all_of_it_is_read() -> None:
    config = {"headers": {"X-Key": " k\u00e9 "}, "user": "me", "password": "p:\u00e9", "timeout_seconds": 20}
    found = read(config)
    assert found.for_url(ORIGIN, ORIGIN) == OwnHeaders({"X-Key": "k\u00e9"}, ("me", "p:\u00e9"))
    assert found.timeout_seconds == 20.0
    assert read({"user": "me"}).for_url(ORIGIN, ORIGIN).credentials == ("me", "")
    assert read({"headers": {"authorization": "Bearer t"}}).headers == {"authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"headers": ["a"]}, "headers: expected an object"),
        ({"headers": {f"x-{number}": "" for number in range(31)}}, "headers: expected an object"),
        ({"headers": {"X Key": "k"}}, "headers: expected a header's name"),
        ({"headers": {"": "k"}}, "headers: expected a header's name"),
        ({"headers": {"X-Key": "secret\r\nHost: b"}}, "headers.X-Key: expected a text"),
        ({"headers": {"X-Key": "secret\0"}}, "headers.X-Key: expected a text"),
        ({"headers": {"X-Key": "secret\u4e16"}}, "headers.X-Key: expected a text"),
        ({"headers": {"X-Key": 5}}, "headers.X-Key: expected a text"),
        ({"headers": {"a": "1", "A": "2"}}, "headers.A: expected each name once"),
        ({"user": "a:b"}, "user: expected"),
        ({"user": ""}, "user: expected"),
        ({"password": "secret"}, "user: expected"),
        ({"user": "a", "password": "secret\n"}, "password: expected"),
        ({"user": "a", "password": 5}, "password: expected"),
        ({"user": "a", "password": "secret", "headers": {"Authorization": "secret"}}, "user: expected either"),
        ({"timeout_seconds": 0.5}, "timeout_seconds: expected a number from 1 to 300"),
        ({"timeout_seconds": 301}, "timeout_seconds"),
        ({"timeout_seconds": 10**400}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"timeout_seconds": "20"}, "timeout_seconds"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_key_and_never_by_a_secret(config: dict[str, object], key: str) -> None:
    with pytest.raises(BadOptions, match=re.escape(key)) as caught:
        read(config)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Connection", "Keep-Alive", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Proxy-Authorization"),
        *("Cookie", "Referer", "Content-Length", "Content-Type", "Accept-Encoding", "If-None-Match", "Range", "Expect"),
    ],
)
def test_headers_that_are_ours_alone_are_refused(name: str) -> None:
    with pytest.raises(BadOptions, match="not a feed's to set"):
        read({"headers": {name.lower(): "x"}})


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        (ORIGIN, ORIGIN),
        (ORIGIN, "http://NEWS.example/other"),
        (ORIGIN, "http://news.example:80/"),
        (ORIGIN, "https://news.example/feed"),
        ("http://news.example:80/", "https://news.example:443/"),
    ],
)
def test_within_the_origin_all_of_it_is_sent(origin: str, url: str) -> None:
    assert OWN.for_url(origin, url) == OWN_HEADERS


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        (ORIGIN, "http://www.news.example/feed"),
        (ORIGIN, "http://news.example:8080/feed"),
        (ORIGIN, "https://news.example:8443/feed"),
        ("http://news.example:8080/", "https://news.example:8080/"),
        ("https://news.example/", "http://news.example/"),
        (ORIGIN, "http://news.example@evil.example/"),
        (ORIGIN, "nonsense"),
    ],
)
def test_nothing_leaves_the_origin(origin: str, url: str) -> None:
    assert OWN.for_url(origin, url) == OwnHeaders()


def test_a_urls_userinfo_counts_as_credentials_within_its_origin() -> None:
    origin = "http://me:p%40ss@news.example/feed"
    assert RequestConfig().for_url(origin, "https://news.example/").credentials == ("me", "p@ss")
    assert RequestConfig().for_url(origin, "https://other.example/").credentials is None
    assert OWN.for_url(origin, ORIGIN).credentials == ("me", "pass")
    token = RequestConfig(headers={"Authorization": "Bearer t"})
    assert token.for_url(origin, ORIGIN) == OwnHeaders({"Authorization": "Bearer t"}, None)
