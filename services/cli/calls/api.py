"""The API as commands use it: calls that return values, and raise what the API answers as a sentence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable, Container, Iterator, Mapping
from typing import Any, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from services.cli.calls.failures import check, is_problem, no_answer, not_of_this_version
from services.cli.calls.loop import Loop

T = TypeVar("T")

PAGE = 500


class Api:
    """The API of one command. Its methods wait for the answer.

    Each raises ConfigurationError with what the API says is wrong, or Unavailable if the API, or a server behind it, is
    away. An interrupt cancels what is under way.
    """

    def __init__(self, loop: Loop, client: httpx.AsyncClient) -> None:
        self._loop = loop
        self._client = client
        self._open: set[httpx.Response] = set()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accept: Container[int] = (),
    ) -> httpx.Response:
        """Return the answer to a request whose body is JSON; parameters of a query that are None are left out.

        A status in `accept` is no error if the answer is no problem.
        """
        request = self._request(method, path, query, json=body, headers=headers)
        return self._loop.run(self._call(request, accept))

    def _request(self, method: str, path: str, query: Mapping[str, Any] | None, **options: Any) -> httpx.Request:
        assert path.startswith("/")  # of this API, whatever the rest is
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._client.build_request(method, path, params=given, **options)

    async def _call(self, request: httpx.Request, accept: Container[int]) -> httpx.Response:
        try:
            answer = await self._client.send(request)
        except httpx.HTTPError as error:
            raise no_answer(error) from error
        if answer.status_code not in accept or is_problem(answer):
            self._check(answer)
        return answer

    def _check(self, answer: httpx.Response) -> None:
        check(answer, has_token="Authorization" in answer.request.headers)

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Return the answer to a GET, as the model `kind` reads it."""
        answer = self.call("GET", path, query=query)
        try:
            return TypeAdapter(kind).validate_json(answer.content)
        except ValidationError as error:
            raise not_of_this_version(answer.request, error) from error

    def rows(self, path: str, kind: type[T], *, limit: int | None = None, **query: Any) -> Iterator[T]:
        """Yield the rows of a list, page after page, each as the model `kind` reads it; `limit` at most."""
        left, cursor, reader = limit, None, TypeAdapter(list[kind])  # type: ignore[valid-type]
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            answer = self.call("GET", path, query={**query, "limit": size, "cursor": cursor})
            try:
                page = answer.json()
                rows, cursor = reader.validate_python(page["items"]), page["next"]
            except (ValueError, KeyError, TypeError) as error:
                raise not_of_this_version(answer.request, error) from error
            yield from rows
            left = None if left is None else left - len(rows)
            if cursor is None:
                return

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        content: AsyncIterable[bytes] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        begun: Callable[[httpx.Headers], object] = lambda _: None,
    ) -> Iterator[bytes]:
        """Yield the body of an answer in parts, while it comes; `content` is sent while it is read.

        `begun` is told the answer's headers.
        """
        request = self._request(method, path, query, content=content, json=json, headers=headers)
        try:
            answer = self._loop.run(self._client.send(request, stream=True))
            self._open.add(answer)
            try:
                if not answer.is_success:
                    self._loop.run(answer.aread())
                    self._check(answer)
                begun(answer.headers)
                parts = answer.aiter_bytes()
                while (part := self._loop.run(_next(parts))) is not None:
                    yield part
            finally:
                self._close(answer)
        except httpx.HTTPError as error:
            raise no_answer(error) from error

    def lines(self, method: str, path: str, **options: Any) -> Iterator[Any]:
        """Yield the values of an answer that is a JSON value a line, while it comes; options as for `stream`."""

        def read(line: bytes) -> Any:
            try:
                return json.loads(line)
            except ValueError as error:
                raise not_of_this_version(self._client.build_request(method, path), error) from error

        rest = b""
        for part in self.stream(method, path, **options):
            *whole, rest = (rest + part).split(b"\n")
            yield from map(read, filter(None, whole))
        if rest:
            yield read(rest)

    def close(self) -> None:
        """Give up what is under way, also answers that nobody has read to their end."""
        for answer in list(self._open):
            self._close(answer)
        self._loop.end(self._client.aclose())

    def _close(self, answer: httpx.Response) -> None:
        if answer in self._open:  # else a generator that was left alone ends after `close`
            self._open.discard(answer)
            self._loop.end(answer.aclose())


async def _next(parts: Any) -> bytes | None:
    return await anext(parts, None)
