"""What is refused says so as a problem, whatever it is."""

from __future__ import annotations

import httpx
import pytest

from services.admin.registry import NewFeed, add_feed, connect


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/api/feeds?q=%00", 422, "query.q"),
        ("GET", "/api/feeds?limit=9999999999999999999999", 422, "query.limit"),
        ("GET", "/api/nope", 404, "no operation GET /api/nope here"),
        ("TRACE", "/api/feeds", 405, "no operation TRACE /api/feeds here"),
        ("POST", "/nope", 404, "no operation POST /nope here"),
    ],
)
async def test_a_refusal_is_a_problem(api: httpx.AsyncClient, method: str, path: str, status: int, said: str) -> None:
    answer = await api.request(method, path)
    found = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (found["status"], found["type"]) == (status, "about:blank")
    assert said in found["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", "/api/feeds", "GET, POST"),
        ("PUT", "/api/feeds/1", "DELETE, GET, PATCH"),
        ("POST", "/api/openapi.json", "GET, HEAD"),
        ("DELETE", "/api/feeds/import", "POST"),
        ("GET", "/api/feeds/import", "POST"),
        ("PATCH", "/api/feeds/export", "GET"),
        ("PATCH", "/api/feeds/check", "POST"),
        ("GET", "/api/feeds/lookup", "POST"),
    ],
)
async def test_a_wrong_method_is_told_all_that_there_are(
    api: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await api.request(method, path, json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_an_id_is_a_number(api: httpx.AsyncClient) -> None:
    for id_, status in (("1", 404), ("x", 404), ("-1", 404), ("0", 422), (str(2**63), 422), ("9" * 5000, 422)):
        answer = await api.get(f"/api/feeds/{id_}")
        assert answer.status_code == status, answer.text
        if status == 422:
            assert answer.json()["errors"][0]["field"] == "path.feed"


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        *(
            (method, f"{path}?tag={tag}", field + (".0" if "import" in path and tag != "/" else ""))
            for method, path, field in (
                ("GET", "/api/feeds", "query.tag"),
                ("GET", "/api/feeds/export", "query.tag"),
                ("POST", "/api/feeds/import", "query.tag"),
                ("GET", "/api/articles", "query.tag"),
                ("GET", "/api/articles/dead", "query.tag"),
            )
            for tag in ("x" * 101, "/")
        ),
        ("GET", "/api/dead-letters?service=x", "query.service"),
        ("GET", "/api/dead-letters/abcd?service=x", "query.service"),
        *(
            (method, f"{path}={moment}", f"query.{path.partition('?')[2]}")
            for method, path in (
                ("GET", "/api/articles?since"),
                ("GET", "/api/articles?until"),
                ("GET", "/api/articles/dead?since"),
                ("GET", "/api/audit?since"),
            )
            for moment in ("0.5", "96", "1764000000", "-1", "2026-11-22", "2026-11-22T12:00:00", "x")
        ),
    ],
)
async def test_a_value_that_cant_be_used_is_named(api: httpx.AsyncClient, method: str, path: str, field: str) -> None:
    answer = await api.request(method, path)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, [field])


@pytest.mark.parametrize("name", ["tags", "add_tags", "remove_tags"])
async def test_a_tag_that_cant_be_used_is_named(api: httpx.AsyncClient, database_url: str, name: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/feed"))
    answer = await api.patch("/api/feeds/1", json={name: ["/"]})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, f"body.{name}")


@pytest.mark.parametrize("moment", ["2026-11-22T12:00:00Z", "2026-11-22T12:00:00.5+01:00", "2026-11-22 12:00:00-05:00"])
async def test_a_moment_has_a_zone(api: httpx.AsyncClient, moment: str) -> None:
    for path in ("/api/articles", "/api/audit"):
        assert (await api.get(path, params={"since": moment})).status_code == 200


async def test_a_number_that_is_too_long_is_said_so(api: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await api.patch("/api/feeds/1", content=b'{"priority": %s}' % (b"9" * 5000), headers=headers)
    assert answer.status_code == 422
    assert "a number is too long" in answer.json()["detail"]
    assert "sys." not in answer.text
