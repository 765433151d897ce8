"""Creations that happen once, however often they are sent: the header `Idempotency-Key`."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response, params
from fastapi.routing import APIRoute

from services.admin.access import answers
from services.admin.access.answers import Answer, Key, KeyBusy
from services.admin.actor import Actor
from services.admin.errors import Invalid
from services.api.problems import ProblemError
from services.api.problems import answers as documented
from services.api.resources import Resources
from shared.errors import Unavailable

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_KEPT_HEADERS = frozenset({"content-type", "location", "etag"})

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


async def _document(
    _key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            pattern=f"^{_KEY.pattern}$",
            description="Your own name for this request, such as a UUID. Sent again within a day, it gets the same"
            " answer, and nothing happens twice.",
        ),
    ] = None,
) -> None:
    """Let OpenAPI tell of the header."""


class CreatingRoute(APIRoute):
    """An operation that takes an `Idempotency-Key` if it is a POST. Usage: `APIRouter(…, route_class=CreatingRoute)`.

    Only answers of success are kept: after an error the same request may be sent again.
    """

    keeps_body = True
    """False: its answers hold a secret, which nobody may get again."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if "POST" in (options.get("methods") or ()):
            dependencies: Sequence[params.Depends] = options.get("dependencies") or ()
            options["dependencies"] = [*dependencies, Depends(_document)]
            options["responses"] = documented(HTTPStatus.CONFLICT) | (options.get("responses") or {})
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        """Return the handler, which looks for a kept answer first."""
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if key is None or request.method != "POST":
                return await handle(request)
            if not _KEY.fullmatch(key):
                raise Invalid(f"{HEADER}: give 1 to 255 visible ASCII characters", f"header.{HEADER.lower()}")
            return await self._answer_once(request, key, handle)

        return once

    async def _answer_once(self, request: Request, key: str, handle: Handler) -> Response:
        here: Resources = request.app.state.resources
        actor: Actor = request.state.actor
        wanted = await _hash(request)
        try:
            async with here.database.transaction() as connection:
                held = await answers.take_key(connection, actor.token_id, key, wanted)
        except KeyBusy as error:
            raise ProblemError(HTTPStatus.CONFLICT, str(error), {"Retry-After": f"{error.seconds}"}) from error
        if isinstance(held, Answer):
            return _replay(held)
        try:
            response = await handle(request)
        except Exception:  # not when it was cancelled for its time: it may be done all the same
            await _release(here, held)
            raise
        if response.status_code >= HTTPStatus.BAD_REQUEST or not isinstance(response.body, bytes):
            await _release(here, held)
            return response
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        kept = Answer(response.status_code, headers, response.body if self.keeps_body else None)
        try:
            async with here.database.transaction() as connection:
                await answers.keep_answer(connection, held, kept)
        except Unavailable as error:  # it is done, so that is the answer
            log.warning("the answer to a creation could not be kept: %s", error)
        return response


class SecretRoute(CreatingRoute):
    """A CreatingRoute whose answers hold a secret: the second request gets 409."""

    keeps_body = False


async def _hash(request: Request) -> bytes:
    parts = (request.method, request.url.path, request.url.query, request.headers.get("content-type", ""))
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + await request.body()).digest()


def _replay(answer: Answer) -> Response:
    if answer.body is None:
        raise ProblemError(
            HTTPStatus.CONFLICT,
            f"a request with this {HEADER} was answered already, with a secret that is shown once:"
            " if you don't have it, revoke what was made, and ask again with a new key",
        )
    return Response(answer.body, answer.status, {**answer.headers, REPLAYED: "true"})


async def _release(here: Resources, key: Key) -> None:
    async with here.database.transaction() as connection:
        await answers.release_key(connection, key)
