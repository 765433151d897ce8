"""Hostile requests about feeds: each is refused with a sentence, or does what it says, and none is a bug."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from services.admin.registry import NewFeed, add_feed, connect

VALUES: list[Any] = [
    None, True, 0, -1, 1, 0.5, 2**31, 2**63, 2**63 - 1, -(2**70), 1e308, float("inf"), float("nan"), "", "x", "a\0b",
    "\ud800", "\udcff/\U0010ffff", "x" * 20_000, "http://a.example/feed", "http://[::1", "http://a.example:99999/",
    "http://a.example/\u202e", "feed:feed:feed:x", "%00", [], [[]], ["\0"], ["\ud800"], ["x"] * 200, [None], {},
    {"\0": 1},
    {"\ud800": "\ud800"}, {"headers": {"X": "\0"}}, {"headers": {"X": "\ud800"}}, {"headers": {"X": "é" * 5000}},
    {"headers": {str(n): "" for n in range(100)}}, {"headers": []}, {"timeout_seconds": float("inf")},
    {"user": "\ud800"}, {"password": "x"}, {"a": {"b": {"c": {}}}}, {"timeout_seconds": 2**80},
]  # fmt: skip

FIELDS = (
    "url", "name", "tags", "add_tags", "remove_tags", "enabled", "priority", "interval_seconds", "shortest_seconds",
    "longest_seconds", "source_type", "config", "found_at", "check", "choose", "\ud800", "\0",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _feed(database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/feed"))


def check(answer: httpx.Response, what: object) -> None:
    assert answer.status_code < 500, (what, answer.text)
    json.loads(answer.content)
    if answer.is_error:
        assert answer.headers["content-type"] == "application/problem+json", what


@pytest.mark.parametrize("field", FIELDS)
async def test_no_value_in_a_body_is_a_bug(api: httpx.AsyncClient, field: str) -> None:
    for value in VALUES:
        new = {"url": "http://b.example/feed", "check": False} | {field: value}
        for method, path, body in (("POST", "/api/feeds", new), ("PATCH", "/api/feeds/1", {field: value})):
            if field == "check" and value is True:
                continue  # that would be a request to a stranger
            content = json.dumps(body).encode()
            answer = await api.request(method, path, content=content, headers={"Content-Type": "application/json"})
            check(answer, (method, body))


BODIES = [b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff\xfe", b'{"url":' + b"[" * 100_000, b"{}", b"NaN"]


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "", "application/json; charset=utf-16", "\xff"])
async def test_no_body_is_a_bug(api: httpx.AsyncClient, kind: str) -> None:
    for body in BODIES:
        for method, path in (
            ("POST", "/api/feeds"),
            ("PATCH", "/api/feeds/1"),
            ("POST", "/api/feeds/lookup"),
            ("POST", "/api/feeds/1/pause"),
        ):
            headers = [(b"Content-Type", kind.encode("latin-1"))] if kind else []
            check(await api.request(method, path, content=body, headers=headers), (method, path, body))


TEXTS = (
    "",
    "\0",
    "\ufffd",
    "x" * 5000,
    "-1",
    "0",
    "1.5",
    str(2**63),
    "9" * 500,
    "inf",
    "null",
    "true",
    "id,name",
    "é",
    "/",
)


@pytest.mark.parametrize(
    "name", ["q", "tag", "state", "host", "source_type", "url", "sort", "limit", "cursor", "nonsense", "\0"]
)
async def test_no_query_is_a_bug(api: httpx.AsyncClient, name: str) -> None:
    for text in TEXTS:
        for path in ("/api/feeds", "/api/feeds/1/fetches", "/api/tags"):
            check(await api.get(path, params={name: text}), (path, name, text))
            check(await api.get(f"{path}?{quote(name)}=%ff%ed%a0%80&{quote(name)}"), (path, name))


@pytest.mark.parametrize("text", [*filter(None, TEXTS), "%00", "%ff", "1%2f", "٣", " 1"])
async def test_no_id_is_a_bug(api: httpx.AsyncClient, text: str) -> None:
    for method, rest in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/fetches"), ("POST", "/fetch")):
        quoted = str(httpx.QueryParams({"": text}))[1:]
        check(await api.request(method, f"/api/feeds/{quoted}{rest}", json={}), (method, text))


@pytest.mark.parametrize("tag", ["", "*", "W/*", '"', '"x', ",", "x" * 5000, "\xff"])
async def test_no_entity_tag_is_a_bug(api: httpx.AsyncClient, tag: str) -> None:
    answer = await api.patch("/api/feeds/1", json={}, headers=[(b"If-Match", tag.encode("latin-1"))])
    check(answer, tag)
    assert answer.is_error == (tag != "*")


@pytest.mark.parametrize("key", [["id", 2**63, 1], ["name", "\ud800", 1], ["name", "\0", 1], ["id", -(2**63), 1], [[]]])
async def test_no_cursor_is_a_bug(api: httpx.AsyncClient, key: list[Any]) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")
    check(await api.get("/api/feeds", params={"cursor": cursor, "sort": key[0] if key != [[]] else "id"}), key)
    check(await api.get("/api/tags", params={"cursor": cursor}), key)
