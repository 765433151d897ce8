"""Unit tests: answers in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from services.api.streams import Streamed


async def test_an_answer_ends_even_if_no_part_of_it_was_sent() -> None:
    """Else its place would be lost for good: a generator that never began runs no `finally`."""
    ended = []

    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"a line"

    async def end() -> None:
        ended.append(True)

    async def receive() -> Message:
        raise AssertionError

    async def send(_message: Message) -> None:
        raise TimeoutError("the client does not read")

    answer = Streamed(parts(), "text/plain", at_end=end)
    with pytest.raises(ClientDisconnect):
        await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    assert ended == [True]
