"""Errors of the AMQP library in words."""

from __future__ import annotations

import errno
import socket

from shared.observability.secrets import mask_credentials

_BY_NUMBER = {
    errno.ECONNREFUSED: "the connection is refused: nobody listens there",
    errno.ECONNRESET: "the connection was cut",
    errno.ETIMEDOUT: "it does not answer in time",
    errno.EHOSTUNREACH: "there is no way to its host",
    errno.ENETUNREACH: "there is no network to its host",
    socket.EAI_NONAME: "no address is known for its name",
    socket.EAI_AGAIN: "the resolver does not answer",
}
"""What the errors of the system mean."""


def describe(error: BaseException) -> str:
    """Return what an error of the library means, in words and without credentials."""
    number = error.args[0] if error.args else None
    if isinstance(number, int) and number in _BY_NUMBER:
        return _BY_NUMBER[number]
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return mask_credentials(str(error) if len(error.args) == 1 else repr(error))
