"""Bounds of a request's body: its size, its pace, and what JSON may be."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.admin.errors import Invalid
from services.api.problems import answer_error
from shared.wire.envelope import has_more_values

MOST_BYTES = 1024 * 1024

LOGIN = ("POST", "/api/session")
"""What anybody may send a body to."""

LOGIN_SECONDS = 5.0

_MOST_BYTES = {"/api/feeds/import": 512 * 1024 * 1024, "/api/session": 4096}
"""Paths whose bodies may be larger, since they are read piece by piece, or smaller."""

FIRST_SECONDS = 20.0
"""A body may be waited for so long in all ..."""

LEAST_BYTES_PER_SECOND = 1024
"""... and longer the more of it came."""

MOST_VALUES = 100_000
MOST_DEPTH = 32
MOST_DIGITS = 1000

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def most_bytes(path: str) -> int:
    """Return how large a body to this path may be."""
    return _MOST_BYTES.get(path, MOST_BYTES)


class TooLarge(HTTPException):
    """413, from within the reading of a body."""

    def __init__(self, most: int) -> None:
        super().__init__(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {most:,} bytes", {"Connection": "close"}
        )


class Body:
    """The body of one request as it comes.

    Args:
        receive: of the server.
        most: bytes that it may have.
        first_seconds: how long it may be waited for, whatever came.
    """

    def __init__(self, receive: Receive, most: int, first_seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._seconds = first_seconds
        self.on_part: Callable[[], None] = lambda: None
        """Called when a part came."""
        self._bytes = 0
        self._is_read = False
        self._ahead: deque[Message] = deque()

    async def read_ahead(self) -> None:
        """Read all of it now; `receive` gives it later. Raises as `receive`."""
        read: list[Message] = []
        while not self._is_read:
            read.append(await self.receive())
            if read[-1]["type"] != "http.request":
                break  # the client is gone
        self._ahead.extend(read)

    async def receive(self) -> Message:
        """Return the next message.

        Raises:
            HTTPException: 413 if the body is too large, 408 if it comes too slowly. FastAPI lets only these through
                where it reads a body.
        """
        if self._ahead:
            return self._ahead.popleft()
        if self._is_read:
            return await self._receive()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._seconds):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT, "the body came too slowly: send it again", {"Connection": "close"}
            ) from None
        part = len(message.get("body", b""))
        self._bytes += part
        self._seconds += began - loop.time() + part / LEAST_BYTES_PER_SECOND
        self._is_read = not message.get("more_body", False)
        if self._bytes > self._most:
            raise TooLarge(self._most)
        self.on_part()
        return message


class JsonBodies:
    """ASGI: refuses JSON that would cost more to parse than it is worth, or that holds what no text of ours may."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and check the body, and let the app read it."""
        if scope["type"] != "http" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        try:
            messages = await _read(receive)
            check_json(b"".join(message.get("body", b"") for message in messages))
        except Exception as error:  # noqa: BLE001 - raised again unless it is one of ours
            await answer_error(error, scope, receive, send)
            return
        left = iter(messages)

        async def replay() -> Message:
            return next(left, None) or await receive()

        await self._app(scope, replay, send)


def _is_json(scope: Scope) -> bool:
    kinds = [value.partition(b";")[0].strip().lower() for name, value in scope["headers"] if name == b"content-type"]
    return any(kind == b"application/json" or kind.endswith(b"+json") for kind in kinds)


async def _read(receive: Receive) -> list[Message]:
    messages, size = [], 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > MOST_BYTES:
            raise TooLarge(MOST_BYTES)
        if not message.get("more_body", False):
            return messages


def check_json(body: bytes) -> None:
    """Check the JSON of a request before anything is made of it; an empty body is left to the handler.

    Raises:
        Invalid: it has too many values, too many levels or too long a number, is no JSON by RFC 8259 (NaN), or has a
            NUL or half a surrogate pair in a text, which PostgreSQL and UTF-8 can't hold.
    """
    if not body:
        return
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES and has_more_values(body, MOST_VALUES):
        raise _refused(f"it has more than {MOST_VALUES:,} values")
    if body.count(b"[") + body.count(b"{") > MOST_DEPTH and _depth(body) > MOST_DEPTH:
        raise _refused(f"it has more than {MOST_DEPTH} levels")
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_number, parse_float=_finite, parse_int=_short)
    except UnicodeDecodeError as error:
        raise _refused("it is no UTF-8") from error
    except ValueError as error:
        raise _refused(f"it is no JSON: {error}") from error
    if b"\\u" in body:
        if _NUL.search(body):
            raise _refused("a text in it has a NUL character")
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise _refused("a text in it has half a surrogate pair") from None


def _refused(reason: str) -> Invalid:
    return Invalid(f"the body can't be read: {reason}", "body")


def _refuse_number(text: str) -> Any:
    raise ValueError(f"{text[:30]} is none of its numbers")


def _short(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise _refused(f"a number is too long, it has more than {MOST_DIGITS:,} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _depth(body: bytes) -> int:
    """Return how deep brackets are nested."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(body):
        if found[0] in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in b"]}":
            depth -= 1
        if depth < 0:
            break  # it is no JSON
    return deepest
