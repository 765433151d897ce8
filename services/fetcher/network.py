"""Sockets under httpcore: guarded addresses, and a deadline that no server can stretch.

httpcore's own timeouts are per operation: a server that sends a byte a second never trips them. Here each operation
gets the smaller of its timeout and what is left of the fetch.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore

from services.fetcher.guard import Network, check_address

RESOLVERS = 32
"""Names that are looked up at the same time."""

MAX_ADDRESSES = 3
"""Addresses of one host that are tried before giving up."""


class Deadline(threading.local):
    """The moment (monotonic seconds) at which this thread's fetch is over."""

    at: float = float("inf")

    def remaining(self, timeout: float | None) -> float:
        """Return the smaller of `timeout` and what is left; not positive once it is over."""
        left = self.at - time.monotonic()
        return left if timeout is None else min(timeout, left)


class GuardedBackend(httpcore.NetworkBackend):
    """Resolves a name once, checks every address, and connects to the very address that it checked."""

    def __init__(self, allowed: tuple[Network, ...], deadline: Deadline) -> None:
        self._allowed = allowed
        self._deadline = deadline
        self._plain = httpcore.SyncBackend()
        self._resolvers = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve")

    def close(self) -> None:
        """Let go of the resolver threads; a look-up that still runs ends by itself."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect within the deadline.

        Raises:
            Blocked: one of the host's addresses is not public.
            httpcore.ConnectError, httpcore.ConnectTimeout: the name does not resolve, or nobody answers.
        """
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._resolve(host, port, self._deadline.remaining(timeout))[:MAX_ADDRESSES]:
            left = self._deadline.remaining(timeout)
            if left <= 0:
                raise httpcore.ConnectTimeout("the fetch's deadline passed while connecting")
            try:
                stream = self._plain.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return DeadlineStream(stream, self._deadline)
        raise failure

    def _resolve(self, host: str, port: int, timeout: float) -> list[str]:
        try:
            if _is_address(host):  # nothing to look up, and nothing to wait for
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            else:
                # getaddrinfo takes no timeout: it goes on in its thread when we are no longer interested.
                looking = self._resolvers.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
                found = looking.result(timeout=max(timeout, 0.0))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from error
        except (socket.gaierror, UnicodeError) as error:
            raise httpcore.ConnectError(f"cannot resolve {host}: {error}") from error
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        for address in addresses:
            check_address(address, self._allowed)
        return addresses


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class DeadlineStream(httpcore.NetworkStream):
    """A stream whose every operation ends by the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read, or raise `httpcore.ReadTimeout`."""
        return self._stream.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write, or raise `httpcore.WriteTimeout`."""
        self._stream.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Return the stream with TLS over it, or raise `httpcore.ConnectError`/`ConnectTimeout`."""
        left = self._left(timeout, httpcore.ConnectTimeout)
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """See httpcore."""
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None, over: Callable[[str], Exception]) -> float:
        left = self._deadline.remaining(timeout)
        if left <= 0:
            raise over("the fetch's deadline passed")
        return left
