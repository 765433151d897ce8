"""Keeping credentials out of logs, errors and pages."""

from __future__ import annotations

import re

MASK = "***"

_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#'\"]*@")


def mask_credentials(text: str) -> str:
    """Return `text` with the user and password of every URL in it replaced by `***`.

    >>> mask_credentials("cannot reach amqp://guest:secret@broker:5672/feeds")
    'cannot reach amqp://***@broker:5672/feeds'
    """
    return _USERINFO.sub(rf"\g<scheme>{MASK}@", text) if "@" in text else text
