"""Keeping credentials out of logs, errors and pages."""

from __future__ import annotations

import re

MASK = "***"

_PARAMETER = re.compile(
    r"(?P<name>[?&;\s](?:password|passwd|pwd|sslpassword|key|sig|token|access_token|auth|api_?key|secret|signature))=[^&;#\s'\"]+",
    re.IGNORECASE,
)
# A server's URL whose password was not percent-encoded: what stands in front of the last @ is kept back.
_SERVER = re.compile(r"(?P<scheme>(?:amqps?|postgres(?:ql)?)://)[^\s'\"]*@", re.IGNORECASE)
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#'\"]*@")


def mask_credentials(text: str) -> str:
    """Return `text` with user, password and secret query parameters of every URL in it replaced by `***`.

    >>> mask_credentials("cannot reach amqp://guest:secret@broker:5672/feeds")
    'cannot reach amqp://***@broker:5672/feeds'
    """
    if "@" in text:
        text = _USERINFO.sub(rf"\g<scheme>{MASK}@", _SERVER.sub(rf"\g<scheme>{MASK}@", text))
    return _PARAMETER.sub(rf"\g<name>={MASK}", text) if "=" in text else text
