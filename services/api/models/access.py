"""Tokens, logins and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from services.admin.access.tokens import TOKEN
from services.admin.actor import Scope

YEAR_SECONDS = 31_536_000

_ROW: dict[str, JsonValue] = {
    "id": 3,
    "name": "indexer",
    "prefix": "fm_0a1b2c3d",
    "scopes": ["consume"],
    "state": "good",
    "created_by": "command ops",
    "created_at": "2026-11-22T12:00:00Z",
    "expires_at": "2027-11-22T12:00:00Z",
    "revoked_at": None,
    "last_used_at": None,
}

TokenText = Annotated[str, StringConstraints(pattern=f"^{TOKEN.pattern}$")]


class NewToken(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"name": "indexer", "scopes": ["consume"], "lifetime_seconds": YEAR_SECONDS}},
    )

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", description="For people.")]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    lifetime_seconds: Annotated[
        int | None, Field(ge=60, le=100 * YEAR_SECONDS, description="null: it never expires.")
    ] = YEAR_SECONDS


class TokenRow(BaseModel):
    """A token in a list. Its secret is known to nobody."""

    model_config = ConfigDict(json_schema_extra={"example": _ROW})

    id: int
    name: str
    prefix: Annotated[str, Field(description="The beginning of the token.")]
    scopes: list[Scope]
    state: Literal["good", "expired", "revoked"]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="To the minute.")]


class CreatedToken(TokenRow):
    """A token that was made."""

    model_config = ConfigDict(json_schema_extra={"example": {**_ROW, "token": f"fm_0a1b2c3d_{'0' * 64}"}})

    token: Annotated[str, Field(description="The token itself. It is shown once.")]


class Me(BaseModel):
    """Who asks."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "indexer fm_0a1b2c3d",
                "token_id": 3,
                "scopes": ["consume"],
                "expires_at": "2027-11-22T12:00:00Z",
            }
        }
    )

    name: Annotated[str, Field(description="As the audit log names them.")]
    token_id: Annotated[int | None, Field(description="null: without a token, on an open API or in the command.")]
    scopes: list[Scope]
    expires_at: datetime | None


class Login(BaseModel):
    """A login with a token."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"token": f"fm_0a1b2c3d_{'0' * 64}"}})

    token: TokenText


class Session(BaseModel):
    """A login."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"name": "anna fm_0a1b2c3d", "scopes": ["write"], "csrf_token": "f" * 64},
        }
    )

    name: str
    scopes: list[Scope]
    csrf_token: Annotated[
        str | None, Field(description="The header X-CSRF-Token of changes by cookie; null: there is no session.")
    ]


class AuditRow(BaseModel):
    """A change that somebody made."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 17,
                "at": "2026-11-22T12:00:00Z",
                "actor": "anna fm_0a1b2c3d",
                "token_id": 3,
                "address": "192.0.2.7",
                "action": "feed.update",
                "target": "42",
                "details": {"priority": 5},
            }
        }
    )

    id: int
    at: datetime
    actor: str
    token_id: int | None
    address: Annotated[str | None, Field(description="Where the request came from; null: the command.")]
    action: str
    target: str | None
    details: dict[str, JsonValue]
