"""Masks credentials in logs, errors and pages: in URLs, in `name=value`, in headers and in JSON.

A name is judged by its words (`X-Amz-Signature`, `feedToken`, `private_token`), so that one rule covers all sites'
spellings. Prose stays unchanged. The time is linear in the length of the text, since strangers may write it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

MASK = "***"

SECRET_NAME = re.compile(
    r"\b(?:auth|authorization|bearer|cookie|hmac|jwt|key|oauth|otp|pass|pin|pw|pwd|session|sid|sig|sso)\b"
    r"|token|secret|passw|passphrase|signature|credential|sess(?:ion)?id"
    r"|(?:access|account|api|auth|feed|license|pass|private|rss|shared|user)key"
)
"""Words that make a name a secret's: the first line as whole words (`api-key`, not `keyword`), the others also as parts
of a word (`authtoken`, `PHPSESSID`)."""

REMEMBERED_CHARACTERS = 100
"""The longest name whose judgement is cached. Longer ones come from strangers."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_SERVER = re.compile(r"(?:amqps?|postgres(?:ql)?)://$", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/\s?#]*")
_TO_SPACE = re.compile(r"\S*")
_PORT = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d*)?$")

# A URL within a parameter of another one, percent-encoded once or more; its @ may be encoded as often.
_NESTED = re.compile(
    r"(?P<slashes>%(?P<level>(?:25)*)2f%(?P=level)2f)"
    r"(?:(?!%(?P=level)(?:2f|3f|23|26))[^\s&/?#])*(?:@|%(?P=level)40)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:^|[\s?&;#,(){}\[\]<>|/\"'`]|%(?:25)*(?:3f|26|3b|23))"
    r"(?P<name>(?:[\w.~$+*!\[\]-]|%(?!(?:25)*(?:3f|26|3b|23|3d|2f))[0-9a-f]{2}){1,200})"
    r"(?:=|(?P<nested>%(?:25)*3d))",
    re.IGNORECASE,
)
# Up to the next parameter. A quote or a bracket may be part of the secret, so neither ends it.
_VALUE = re.compile(r"""(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+")?(?:(?!;[\w.%-]{1,100}=|[&#])\S)*+""")
_NESTED_VALUE = re.compile(r"(?:(?!%(?:25)*(?:26|23)|[&#;])\S)*+", re.IGNORECASE)
_MEMBER = re.compile(
    r"""(?P<start>(["'])(?P<name>[\w.-]{1,200})\2\s*:\s*)("(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|[-+\w.]+)""",
    re.DOTALL,
)
_OWN_TOKEN = re.compile(r"\b(fm_[0-9a-f]{8})_[0-9a-f]+", re.ASCII)
"""A token of our API; its prefix is no secret."""
_HEADER = re.compile(
    r"(?P<name>\bauthorization\s*[:=]\s*(?:basic|bearer|digest|token|negotiate|apikey)\s+)\S+", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Return whether a parameter, header or field of this name holds a secret. It may be percent-encoded.

    >>> [name for name in ("X-Amz-Signature", "feedToken", "keyword", "author") if is_secret_name(name)]
    ['X-Amz-Signature', 'feedToken']
    """
    return _is_secret(name) if len(name) <= REMEMBERED_CHARACTERS else _is_secret.__wrapped__(name)


@lru_cache(maxsize=1000)  # the names of log fields come with each line
def _is_secret(name: str) -> bool:
    for _ in range(3):
        name = unquote(name) if "%" in name else name
    return SECRET_NAME.search(" ".join(_WORDS.findall(name)).lower()) is not None


def mask_credentials(text: str) -> str:
    """Return `text` with every user, password and secret parameter in it replaced by `***`.

    >>> mask_credentials("cannot reach amqp://guest:secret@broker:5672/feeds")
    'cannot reach amqp://***@broker:5672/feeds'
    """
    if "//" in text and "@" in text:
        text = _mask_userinfo(text)
    if "fm_" in text:
        text = _OWN_TOKEN.sub(rf"\1_{MASK}", text)
    if "%" in text:
        text = _NESTED.sub(rf"\g<slashes>{MASK}@", text)
    if ":" in text:
        if '"' in text or "'" in text:
            text = _MEMBER.sub(_mask_member, text)
        if "author" in text.lower():  # quicker than the pattern
            text = _HEADER.sub(rf"\g<name>{MASK}", text)
    return _mask_parameters(text) if "=" in text or "%" in text else text


def mask_within(value: Any) -> Any:
    """Return `value` as JSON data with all texts masked, and every text under a secret's name replaced."""
    if isinstance(value, str):  # first, since most values are texts
        return mask_credentials(str(value))
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {
            _mask_name(str(name)): MASK if isinstance(item, str) and is_secret_name(str(name)) else mask_within(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [mask_within(item) for item in value]
    return mask_credentials(str(value))


def _mask_name(name: str) -> str:
    return _mask_short(name) if len(name) <= REMEMBERED_CHARACTERS else mask_credentials(name)


_mask_short = lru_cache(maxsize=1000)(mask_credentials)


def _mask_userinfo(text: str) -> str:
    """Mask user and password of each URL in `text`, with or without its scheme."""
    parts: list[str] = []
    done = at = 0
    while (start := text.find("//", at) + 2) > 1:
        at = _authority_end(text, start)
        userinfo, found, _ = text[start:at].rpartition("@")
        if found and (text[start - 3 : start - 2] == ":" or ":" in userinfo):
            parts += [text[done:start], MASK]
            done = start + len(userinfo)
    return "".join([*parts, text[done:]])


def _authority_end(text: str, start: int) -> int:
    """Return where user, password and host end: after a `/` only if an unencoded password explains it."""
    end = _end(_AUTHORITY, text, start)
    authority = text[start:end]
    if _SERVER.search(text, max(start - 16, 0), start) or ("@" not in authority and not _PORT.match(authority)):
        token_end = _end(_TO_SPACE, text, start)
        last = text.rfind("@", start, token_end)
        return token_end if last < 0 else max(last + 1, end)
    return end


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    assert found is not None  # each pattern also matches the empty text
    return found.end()


def _mask_member(found: re.Match[str]) -> str:
    return f'{found["start"]}"{MASK}"' if is_secret_name(found["name"]) else found[0]


def _mask_parameters(text: str) -> str:
    """Mask the value of each `name=value` with a secret's name; other values may hold such pairs themselves."""
    parts: list[str] = []
    done = at = 0
    while found := _NAMED.search(text, at):
        at = found.end()
        if is_secret_name(found["name"]):
            parts += [text[done:at], MASK]
            at = done = _end(_NESTED_VALUE if found["nested"] else _VALUE, text, at)
    return "".join([*parts, text[done:]])
