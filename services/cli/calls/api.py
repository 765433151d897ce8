"""The API as commands use it: calls that return values, and raise what the API answers as a sentence."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import AsyncIterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
from pydantic import PostgresDsn, TypeAdapter

from local.addresses import find_broker
from local.addresses import open_database as open_private_database
from services.cli.calls.within import WithinProcess
from services.cli.settings import CliSettings
from shared.errors import ConfigurationError, Unavailable
from shared.settings import read_settings

T = TypeVar("T")

CONNECT_SECONDS = 10.0
READ_SECONDS = 120.0
PAGE = 500


class Api:
    """The API of one command. Its methods wait for the answer.

    Each raises ConfigurationError with what the API says is wrong, or Unavailable if the API, or a server behind it, is
    away.
    """

    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient) -> None:
        self._runner = runner
        self._client = client

    def call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> httpx.Response:
        """Return the answer to a request whose body is JSON; parameters of a query that are None are left out."""
        return self._runner.run(self._call(method, path, query, body))

    async def _call(self, method: str, path: str, query: Mapping[str, Any] | None, body: Any) -> httpx.Response:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            answer = await self._client.request(method, path, params=given, json=body)
        except httpx.HTTPError as error:
            raise _away(error) from error
        _check(answer)
        return answer

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Return the answer to a GET, as the model `kind` reads it."""
        return TypeAdapter(kind).validate_json(self.call("GET", path, query=query).content)

    def rows(self, path: str, kind: type[T], *, limit: int | None = None, **query: Any) -> Iterator[T]:
        """Yield the rows of a list, page after page, each as the model `kind` reads it; `limit` at most."""
        left, cursor, reader = limit, None, TypeAdapter(kind)
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = self.call("GET", path, query={**query, "limit": size, "cursor": cursor}).json()
            yield from map(reader.validate_python, page["items"])
            left, cursor = None if left is None else left - len(page["items"]), page["next"]
            if cursor is None:
                return

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        content: AsyncIterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[bytes]:
        """Yield the body of an answer in parts, while it comes; `content` is sent while it is read."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        request = self._client.build_request(method, path, params=given, content=content, headers=headers)
        try:
            answer = self._runner.run(self._client.send(request, stream=True))
            try:
                if answer.is_error:
                    self._runner.run(answer.aread())
                    _check(answer)
                parts = answer.aiter_bytes()
                while (part := self._runner.run(_next(parts))) is not None:
                    yield part
            finally:
                self._runner.run(answer.aclose())
        except httpx.HTTPError as error:
            raise _away(error) from error

    def lines(self, method: str, path: str, **options: Any) -> Iterator[Any]:
        """Yield the values of an answer that is a JSON value a line, while it comes; options as for `stream`."""
        rest = b""
        for part in self.stream(method, path, **options):
            *whole, rest = (rest + part).split(b"\n")
            yield from map(json.loads, filter(None, whole))
        if rest:
            yield json.loads(rest)


async def _next(parts: Any) -> bytes | None:
    return await anext(parts, None)


def _away(error: httpx.HTTPError) -> Unavailable:
    return Unavailable(f"{error.request.url.copy_with(userinfo=b'')}: no answer: {error or type(error).__name__}")


def _check(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        detail = str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{answer.request.url}: status {answer.status_code}; is this the API of Feedmill?"
    is_away = answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    raise Unavailable(detail) if is_away else ConfigurationError(detail)


@contextmanager
def open_api(*, database: bool = True, create: bool = False) -> Iterator[Api]:
    """Yield the API at FEEDMILL_API_URL; without one, an API in this process, on the servers that commands find.

    Args:
        database: whether the calls need the database; without one that is given or runs, a private one is started.
        create: create a private database if there is none yet.
    """
    settings = read_settings(CliSettings)
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        if settings.api_url:
            client = _afar(settings)
        else:
            url = stack.enter_context(open_private_database(settings, create=create)) if database else None
            opened = AsyncExitStack()
            client = runner.run(_within(opened, settings, url))
            stack.callback(lambda: runner.run(opened.aclose()))
        stack.callback(lambda: runner.run(client.aclose()))
        yield Api(runner, client)


def _afar(settings: CliSettings) -> httpx.AsyncClient:
    token = settings.api_token.get_secret_value()
    return httpx.AsyncClient(
        base_url=settings.api_url.rstrip("/"),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        trust_env=False,  # a proxy of the environment is for feeds
    )


async def _within(stack: AsyncExitStack, settings: CliSettings, database_url: str | None) -> httpx.AsyncClient:
    from services.admin.actor import Actor, Scope  # FastAPI takes as long as all other imports of the command
    from services.api.app import make_app
    from services.api.resources import Resources, open_database
    from services.api.settings import ApiSettings

    own = read_settings(ApiSettings)
    changes: dict[str, Any] = {"database_url": PostgresDsn(database_url)} if database_url else {}
    with suppress(ConfigurationError):  # most calls need none
        changes["amqp_url"] = find_broker(settings)
    own = own.model_copy(update=changes)
    database = await stack.enter_async_context(open_database(own).open())
    actor = Actor(f"command {getpass.getuser()}", frozenset({Scope.ADMIN}))

    async def authenticate(_request: object) -> Actor:
        return actor

    resources = Resources(own, database)
    stack.callback(resources.arrivals.close)
    app = make_app(resources, authenticate)
    return httpx.AsyncClient(transport=WithinProcess(app), base_url="http://feedmill", timeout=None)  # noqa: S113
