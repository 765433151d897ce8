"""Dead letters: messages that could not be handled."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from services.admin.dead_letters.letters import SERVICES
from services.api.models.chosen import these_or_all
from services.api.models.texts import PLAIN

MOST = 10_000

_LETTER: dict[str, JsonValue] = {
    "message_id": "0b5d0c1e2f3a4b5c6d7e8f9012345678",
    "feed_id": 1,
    "queue": "fetcher.dead",
    "first_queue": "fetcher.00",
    "type": "feed.fetch.v1",
    "reason": "exhausted",
    "error": "Bug: x",
    "died_at": "2026-11-22T12:00:00Z",
    "attempt": 4,
    "bytes": 420,
}

Service = Annotated[str, Field(pattern=f"^(?:{'|'.join(SERVICES)})$", description="Only in this service's dead queue.")]
MessageId = Annotated[str, Field(min_length=1, max_length=255, pattern=PLAIN)]
Look = Annotated[int, Field(ge=1, le=MOST, description="Look at so many letters of each queue, the oldest first.")]


class Letter(BaseModel):
    """A dead letter. Its headers may hold anything."""

    model_config = ConfigDict(json_schema_extra={"example": _LETTER})

    message_id: str
    feed_id: int | str | None
    queue: str
    first_queue: Annotated[str, Field(description="Where it failed.")]
    type: str
    reason: str
    error: str
    died_at: str
    attempt: int | str
    bytes: Annotated[int, Field(description="Of the body as it travels, compressed.")]


class Letters(BaseModel):
    """Dead letters; there is no further page, since a queue has only a beginning."""

    model_config = ConfigDict(json_schema_extra={"example": {"items": [_LETTER], "more": False}})

    items: list[Letter]
    more: Annotated[bool, Field(description="A queue may have more than `limit`.")]


class WholeLetter(Letter):
    """A dead letter with its headers and its body, as texts for a person, without secrets."""

    model_config = ConfigDict(
        json_schema_extra={"example": _LETTER | {"headers": {"reason": "exhausted"}, "body": '{\n  "feed_id": 1\n}'}}
    )

    headers: dict[str, str]
    body: Annotated[str, Field(description="Indented JSON if it is JSON; cut after 100,000 characters.")]


class LettersRequest(BaseModel):
    """Which letters."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"ids": [_LETTER["message_id"]], "service": "fetcher"}, **these_or_all("ids")},
    )

    ids: Annotated[list[MessageId], Field(max_length=2 * MOST, description="Message ids, or their beginnings.")] = []
    all: Annotated[bool, Field(description="In place of ids.")] = False
    service: Service | None = None
    limit: Look = 1000

    @model_validator(mode="after")
    def _one_of_both(self) -> LettersRequest:
        if bool(self.ids) == self.all:
            raise ValueError("say which: message ids, or `all`")
        return self


class PurgeRequest(LettersRequest):
    """Which letters to throw away."""

    dry_run: Annotated[bool, Field(description="Only say how many, and which.")] = False


class Requeued(BaseModel):
    """How many went back."""

    model_config = ConfigDict(json_schema_extra={"example": {"requeued": 1}})

    requeued: int


class Purged(BaseModel):
    """How many were thrown away, or would be, and their ids."""

    model_config = ConfigDict(json_schema_extra={"example": {"purged": 1, "ids": [_LETTER["message_id"]]}})

    purged: int
    ids: list[str]
