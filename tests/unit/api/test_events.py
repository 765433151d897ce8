"""What open pages are told, and when."""

from __future__ import annotations

import asyncio
import re
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.api.pages import events
from shared.errors import Unavailable


class _Here:
    """An API whose looks find nothing."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.scene = SimpleNamespace(get=self._get)

    async def _get(self) -> None:
        raise Unavailable("nobody is there")


async def test_pages_look_each_at_its_own_moment_and_come_back_at_different_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.5)

    async def follow() -> tuple[int, float]:
        stream = events._events(cast("Any", _Here()))
        first = re.match(rb"retry: (\d+)\n", await anext(stream))
        assert first
        assert await anext(stream) == events._LOOK
        return int(first[1]), time.monotonic()

    found = await asyncio.gather(*(follow() for _ in range(30)))
    retries, moments = zip(*found, strict=True)
    least, most = events.RETRY_MS
    assert all(least <= retry <= most for retry in retries)
    assert len(set(retries)) > 10
    assert max(moments) - min(moments) > 0.1
