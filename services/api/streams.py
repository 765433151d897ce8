"""Bodies and answers of any size: kept in a file, sent in parts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import anyio.to_thread
from fastapi import Request
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from services.admin.errors import Invalid
from shared.errors import FeedmillError, Unavailable

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")

PART_BYTES = 65_536
LINES = "application/x-ndjson"


class Lines(Response):
    """Tells OpenAPI of which type answers in lines of JSON are."""

    media_type = LINES


def lines_like(*examples: Mapping[str, Any], description: str) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of an operation that answers with lines such as these, each an object of JSON."""
    text = "".join(f"{json.dumps(example)}\n" for example in examples)
    schema = {"type": "string", "contentMediaType": LINES}
    return {200: {"description": description, "content": {LINES: {"schema": schema, "example": text}}}}


async def lines_of(
    found: Iterator[T], encode: Callable[[T], bytes], refusal: Callable[[FeedmillError], Response]
) -> AsyncGenerator[bytes, None]:
    """Yield what is found, which takes threads; an error of ours is the last line."""
    try:
        async for each in iterate_in_threadpool(found):
            yield encode(each)
    except FeedmillError as error:
        yield b'{"error": ' + bytes(refusal(error).body) + b"}\n"


class Streamed(StreamingResponse):
    """An answer in parts. Its generator is closed when the answer ends, also if the client has gone away.

    Args:
        parts: the answer.
        media_type: of the answer.
        headers: of the answer.
        at_end: called then, even if no part was sent.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        at_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(parts, headers=headers, media_type=media_type)
        self._parts = parts
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._parts.aclose()
                if self._at_end is not None:
                    await self._at_end()


async def spool(request: Request, most_bytes: int) -> BinaryIO:
    """Return the body as a temporary file, at its beginning; of a larger one no more than shows that it is too large.

    Raises:
        Invalid: the body broke off.
        Unavailable: there is no room for it here.
    """
    file = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 - the caller closes it
    try:
        with room_on_disk():
            async for part in request.stream():
                await anyio.to_thread.run_sync(file.write, part)
                if file.tell() > most_bytes:
                    break
            await anyio.to_thread.run_sync(file.seek, 0)
    except ClientDisconnect:
        file.close()
        raise Invalid("the body broke off: send it again", "body") from None
    except BaseException:
        file.close()
        raise
    return file


async def file_parts(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    """Yield the rest of a file, and close it."""
    with file:
        while part := await anyio.to_thread.run_sync(file.read, PART_BYTES):
            yield part


@contextmanager
def room_on_disk() -> Iterator[None]:
    """Make Unavailable of the error of a temporary file that can't be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Unavailable(
            f"the API can't write a temporary file: {reason}. Make room in its TMPDIR, or try later"
        ) from (error)
