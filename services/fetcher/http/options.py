"""Pure: the part of a feed's own settings (`source_config`) that is about requests. They are a stranger's JSON.

`RequestConfig` is what all source types have in common. A source type with settings of its own extends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from shared.politeness import same_origin

MOST_TIMEOUT_SECONDS = 300.0
MOST_HEADERS = 30

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""A header's name (RFC 9110 5.6.2)."""

_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4000}")
"""A header's value (RFC 9110 5.5): no CR, LF or NUL, and nothing outside of Latin-1."""

_RESERVED = re.compile(
    r"accept-encoding|connection|content-.*|cookie2?|expect|host|if-.*|keep-alive|proxy-.*|range|referer|te|trailer"
    r"|transfer-encoding|upgrade|via"
)
"""Framing and hop-by-hop fields (RFC 9110 7.6.1), fields that the fetcher sets itself, and fields it never sends."""


class BadOptions(ValueError):
    """The feed's settings can't be used. The message names the field and what is expected, never a value."""


@dataclass(frozen=True)
class OwnHeaders:
    """The headers and credentials that one feed adds to a request."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent beside ours, or in their place (User-Agent, Accept)."""
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """User and password (Basic, RFC 7617)."""


def _check_headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MOST_HEADERS:
        raise _wrong(f"headers: expected an object of at most {MOST_HEADERS} names and texts")
    headers: dict[str, str] = {}
    for name, text in value.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise _wrong(f"headers: expected a header's name, found {str(name)[:50]!r}")
        if _RESERVED.fullmatch(name.lower()):
            raise _wrong(f"headers.{name}: this header is not a feed's to set")
        if not isinstance(text, str) or not _VALUE.fullmatch(text):
            raise _wrong(
                f"headers.{name}: expected a text of at most 4000 Latin-1 characters without line breaks and NUL"
            )
        if name.lower() in map(str.lower, headers):
            raise _wrong(f"headers.{name}: expected each name once, in upper or lower case")
        headers[name] = text.strip()
    return headers


def _wrong(message: str) -> PydanticCustomError:
    """Return an error whose message already names the field."""
    return PydanticCustomError("named", "{message}", {"message": message})


class RequestConfig(BaseModel):
    """The settings of a feed that is fetched over HTTP. Unknown fields are ignored.

    A field's description completes the sentence "expected …" in the message of an error.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    headers: Annotated[Mapping[str, str], BeforeValidator(_check_headers)] = Field({}, repr=False)
    user: str | None = Field(
        None,
        pattern=r"^[^:\x00-\x1f\x7f]+$",
        repr=False,
        description="a text without colons and control characters (RFC 7617)",
    )
    password: str | None = Field(
        None, pattern=r"^[^\x00-\x1f\x7f]*$", repr=False, description="a text without control characters (RFC 7617)"
    )
    timeout_seconds: float | None = Field(
        None, ge=1, le=MOST_TIMEOUT_SECONDS, strict=True, description=f"a number from 1 to {MOST_TIMEOUT_SECONDS:.0f}"
    )
    """The wall-clock deadline of the feed's fetches. None: the fetcher's own."""

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if self.user is None and self.password is not None:
            raise _wrong("user: expected a text, since there is a password")
        if self.user is not None and self._has_authorization:
            raise _wrong("user: expected either user and password or an Authorization header, found both")
        return self

    @property
    def _has_authorization(self) -> bool:
        return any(name.lower() == "authorization" for name in self.headers)

    def for_url(self, origin_url: str, url: str) -> OwnHeaders:
        """Return what may be sent to `url`, a request of the fetch that began at `origin_url`.

        User and password in `origin_url` count as the feed's credentials, so that a redirect within its origin keeps
        them. Nothing is sent to another origin: any header may be a secret. A redirect from http to https on the same
        host's default ports stays within the origin.
        """
        if not same_origin(origin_url, url):
            return OwnHeaders()
        if self.user is not None:
            return OwnHeaders(self.headers, (self.user, self.password or ""))
        return OwnHeaders(self.headers, None if self._has_authorization else _userinfo(origin_url))


C = TypeVar("C", bound=RequestConfig)


def read_config(schema: type[C], config: Mapping[str, object]) -> C:
    """Return the settings in a feed's `source_config`.

    Raises:
        BadOptions: a field can't be used.
    """
    try:
        return schema.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadOptions(_describe(schema, first)) from None


def _describe(schema: type[RequestConfig], error: ErrorDetails) -> str:
    if error["type"] == "named":
        return error["msg"]
    field_info = schema.model_fields.get(str(error["loc"][0])) if error["loc"] else None
    expected = field_info and field_info.description
    return f"{'.'.join(map(str, error['loc']))}: {f'expected {expected}' if expected else error['msg']}"


def _userinfo(url: str) -> tuple[str, str] | None:
    if "@" not in url:
        return None
    parts = urlsplit(url)
    if not (parts.username or parts.password):
        return None
    return unquote(parts.username or ""), unquote(parts.password or "")
