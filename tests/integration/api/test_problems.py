"""What is refused says so as a problem, whatever it is."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/api/feeds?q=%00", 422, "query.q"),
        ("GET", "/api/feeds?limit=9999999999999999999999", 422, "query.limit"),
        ("GET", "/api/nope", 404, "no operation GET /api/nope here"),
        ("TRACE", "/api/feeds", 405, "no operation TRACE /api/feeds here"),
        ("GET", "/", 404, "no operation GET / here"),
    ],
)
async def test_a_refusal_is_a_problem(api: httpx.AsyncClient, method: str, path: str, status: int, said: str) -> None:
    answer = await api.request(method, path)
    found = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (found["status"], found["type"]) == (status, "about:blank")
    assert said in found["detail"]
