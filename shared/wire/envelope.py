"""The envelope: how a message becomes bytes and how bytes become a message, within bounds.

One message kind is one frozen class with one versioned name (`KIND`), one JSON form and one decode error. The golden
files in `tests/contract/golden/` hold the JSON; a change that breaks them is a new version of the kind.

Old and new services run side by side during an upgrade. Therefore:

- a new field has a default, since older services don't send it;
- `decode` leaves out a field that this version doesn't know;
- a closed list (outcomes, reasons) may grow: `decode` replaces a value that this version doesn't know by a similar one.

A message's size and number of values are bounded, so that a hostile publisher can't fill the memory.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, FailFast, PlainSerializer, ValidationError
from pydantic_core import ErrorDetails

from shared.errors import DecodeError, MessageTooLarge
from shared.tracing import NO_SPAN, Span

COMPRESS_ABOVE_BYTES = 4096
"""Larger bodies are gzipped; for smaller ones the gzip header costs more than it saves."""

MAX_MESSAGE_BYTES = 15 * 1024 * 1024
"""The default of FEEDMILL_MAX_MESSAGE_BYTES."""

DECODED_MULTIPLE = 4
"""A body may unfold to this multiple of FEEDMILL_MAX_MESSAGE_BYTES: enough for the result of a feed of 10 MiB with its
HTML, and too little for a gzip bomb."""

FULLY_CHECKED_VALUES = 20_000
"""Unknown fields are named only in messages of at most this many values: each costs an error object of its own."""

T = TypeVar("T")

Many = Annotated[tuple[T, ...], FailFast()]
"""A list whose validation ends at the first wrong element: a million wrong elements would be a million errors."""


def _to_wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Moment = Annotated[AwareDatetime, PlainSerializer(_to_wire, return_type=str, when_used="json")]
"""An aware datetime; in JSON always UTC with a trailing Z."""


class Record(BaseModel):
    """A part of a message: frozen, and strict about unknown fields where our code makes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Listed:
    """A field whose value is one of a closed list of texts. A later version may have a longer list."""

    known: frozenset[str]
    stand_in: Callable[[Mapping[str, Any]], str]
    """Takes the record as it came; returns the value to use instead of an unknown one."""


class Message(Record):
    """A record that travels on its own. A subclass names its `KIND`."""

    KIND: ClassVar[str]
    LISTED: ClassVar[Mapping[str, Listed]] = {}
    """By the field's name, as `decode` reports names."""
    MOST_BYTES: ClassVar[int | None] = None
    """The largest size of its JSON; None: what the caller of `decode` allows."""
    MOST_VALUES: ClassVar[int] = 1_500_000
    """The most members and elements in its JSON. Each takes some 100 bytes of memory, however short it is."""
    span: ClassVar[Span] = NO_SPAN
    """Under which it is handled. A traced message has its own (`traced`); it is neither a field nor sent."""

    def traced(self, span: Span) -> Self:
        """Return this message, handled under `span` from now on; copies of it are, too."""
        if span is not NO_SPAN:
            self.__dict__["span"] = span  # where functools.cached_property puts what isn't a field, too
        return self

    def encode(self) -> tuple[bytes, str | None]:
        """Return the body and its content encoding (`gzip`, or None for plain JSON)."""
        return _pack(self.model_dump_json().encode())

    def encode_within(self, max_message_bytes: int) -> tuple[bytes, str | None]:
        """Return what `encode` does.

        Raises:
            MessageTooLarge: `decode_sized` would refuse it, or the broker.
        """
        plain = self.model_dump_json().encode()
        self._require_size(plain, DECODED_MULTIPLE * max_message_bytes)
        body, encoding = _pack(plain)
        if len(body) > max_message_bytes:
            raise MessageTooLarge(f"the body has {len(body)} bytes, more than {max_message_bytes}")
        return body, encoding

    def headers(self) -> dict[str, str | int]:
        """Return what the management UI shows of this message beside the body."""
        return {}

    @classmethod
    def decode(
        cls,
        body: bytes,
        content_encoding: str | None = None,
        *,
        on_unknown: Callable[[set[str]], None] | None = None,
    ) -> Self:
        """Return the message in `body`, which a later version may have sent.

        `on_unknown` gets the names of unknown fields and values, if there are any (`entries.summary`,
        `outcome='merged'`).

        Raises:
            DecodeError: the body is no JSON of this kind; names the field and the reason.
            MessageTooLarge: it unfolds to more bytes or values than a service may take.
        """
        return cls.decode_sized(body, content_encoding, max_message_bytes=MAX_MESSAGE_BYTES, on_unknown=on_unknown)[0]

    @classmethod
    def decode_sized(
        cls,
        body: bytes,
        content_encoding: str | None,
        *,
        max_message_bytes: int,
        on_unknown: Callable[[set[str]], None] | None,
    ) -> tuple[Self, int]:
        """Return the message as `decode` does, and how many bytes its JSON has."""
        most = DECODED_MULTIPLE * max_message_bytes
        plain = unpack(body, content_encoding, min(most, cls.MOST_BYTES or most))
        values = cls._require_size(plain, most)
        is_small = values <= FULLY_CHECKED_VALUES or not has_more_values(plain, FULLY_CHECKED_VALUES)
        return cls._validate(plain, is_small, on_unknown), len(plain)

    @classmethod
    def _require_size(cls, plain: bytes, most_bytes: int) -> int:
        """Return at most how many values this JSON has. Raises MessageTooLarge."""
        if len(plain) > most_bytes:
            raise MessageTooLarge(f"the body unfolds to more than {most_bytes} bytes")
        # An upper bound, since it also counts within texts. Most messages pass by it alone.
        values = plain.count(b",") + plain.count(b"[") + plain.count(b"{")
        if values > cls.MOST_VALUES and has_more_values(plain, cls.MOST_VALUES):
            raise MessageTooLarge(f"the body holds more than {cls.MOST_VALUES} values")
        return values

    @classmethod
    def _validate(cls, plain: bytes, is_small: bool, on_unknown: Callable[[set[str]], None] | None) -> Self:
        unknown: set[str] = set()
        try:
            if is_small:
                return cls.model_validate_json(plain)
        except ValidationError as error:
            unknown = {_field_name(item["loc"]) for item in _problems(error) if item["type"] == "extra_forbidden"}
        try:
            message = cls.model_validate_json(plain, extra="ignore")
        except ValidationError as error:
            if not any(item["type"] in _NOT_IN_LIST for item in _problems(error)):
                raise cls._refusal(error) from error
            plain, unlisted = cls._replace_unlisted(plain)
            unknown |= unlisted
            try:
                message = cls.model_validate_json(plain, extra="ignore")
            except ValidationError as second:
                raise cls._refusal(second) from second
        if unknown and on_unknown:
            on_unknown(unknown)
        return message

    @classmethod
    def _replace_unlisted(cls, plain: bytes) -> tuple[bytes, set[str]]:
        """Return the JSON with known values in place of unknown ones, and the names of these."""
        record, unlisted = json.loads(plain), set[str]()
        for name, listed in cls.LISTED.items():
            *path, field = name.split(".")
            for holder in _holders(record, path):
                value = holder.get(field)
                if isinstance(value, str) and value not in listed.known:
                    unlisted.add(f"{name}={value[:50]!r}")
                    holder[field] = listed.stand_in(holder)
        return json.dumps(record).encode(), unlisted

    @classmethod
    def _refusal(cls, error: ValidationError) -> DecodeError:
        first, *others = _problems(error)
        where = ".".join(str(part) for part in first["loc"]) or "body"
        return DecodeError(f"not a {cls.KIND} message: {where}: {first['msg']} ({len(others) + 1} error(s))")


_NOT_IN_LIST = frozenset({"enum", "literal_error"})
"""pydantic's error types for a value that is not in a closed list."""


def _problems(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _holders(record: Any, path: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects at a path through objects and lists."""
    if isinstance(record, list):
        for item in record:
            yield from _holders(item, path)
    elif isinstance(record, dict) and path:
        yield from _holders(record.get(path[0]), path[1:])
    elif isinstance(record, dict):
        yield record


def _field_name(place: tuple[int | str, ...]) -> str:
    """Return the field's path without list indices: all entries of a list share one name."""
    return ".".join(part for part in place if isinstance(part, str))


def unpack(body: bytes, content_encoding: str | None, most_bytes: int) -> bytes:
    """Return the JSON in a body.

    Raises:
        DecodeError: the body is not encoded as announced.
        MessageTooLarge: it unfolds to more than `most_bytes`.
    """
    plain, is_complete = unpack_beginning(body, content_encoding, most_bytes)
    if not is_complete and len(plain) >= most_bytes:
        raise MessageTooLarge(f"the body unfolds to more than {most_bytes} bytes")
    if not is_complete:
        raise DecodeError("the gzip stream is cut short")
    return plain


def unpack_beginning(body: bytes, content_encoding: str | None, most_bytes: int) -> tuple[bytes, bool]:
    """Return at most `most_bytes` of the unfolded body, and whether that is all of it.

    Raises:
        DecodeError: the body is not encoded as announced.
    """
    if not content_encoding:
        return body[:most_bytes], len(body) <= most_bytes
    if content_encoding != "gzip":
        raise DecodeError(f"content encoding {content_encoding!r} is unknown; expected gzip or none")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = stream.decompress(body, most_bytes)
    except zlib.error as error:
        raise DecodeError(f"the body is not the gzip stream that it is announced as: {error}") from error
    return plain, stream.eof


# Matches up to the next comma or opening bracket outside of strings. It always matches, so its time is linear.
_TO_NEXT_VALUE = re.compile(rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.?)*+(?:"|\Z))*+(?:[,\[{]|\Z)', re.DOTALL)


def _pack(plain: bytes) -> tuple[bytes, str | None]:
    if len(plain) <= COMPRESS_ABOVE_BYTES:
        return plain, None
    return gzip.compress(plain, compresslevel=1, mtime=0), "gzip"


def has_more_values(plain: bytes, most: int) -> bool:
    """Return whether this JSON has more than about `most` members and elements."""
    return next(islice(_TO_NEXT_VALUE.finditer(plain), most, None), None) is not None
