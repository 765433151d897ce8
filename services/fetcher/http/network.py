"""Connections: guarded addresses, verified TLS, and a deadline that no server can stretch.

A socket's own timeout holds for one operation, so a server that sends a byte a second never trips it. Here each
operation gets its timeout or what is left of the fetch's time, whichever is less.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from typing import Any

from services.fetcher.http.address_guard import Network, check_address

RESOLVERS = 32
"""Names that are resolved at the same time."""

MAX_ADDRESSES = 3
"""Addresses of one host that are tried before giving up."""

RECEIVE_BYTES = 65536

_OUR_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a connect that say nothing about the host."""

_Endpoint = tuple[int, tuple[Any, ...]]
"""Address family and socket address, as `getaddrinfo` gives them and `connect` takes them."""

_OUR_NETWORK = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})
"""The same for some addresses: this machine has no route to them, or no free port."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""A resolver's errors about the name. Its other errors are about itself: unreachable, refused, no answer."""

FAIR_SHARE = 0.5
"""A host that does not answer counts as down only if it had at least this part of the connect timeout. The fetch's
deadline may leave less."""


class ConnectFailed(Exception):
    """No connection: the name, the addresses or the TLS handshake failed, or took too long. No HTTP happened."""

    def __init__(self, reason: str, *, is_ours: bool = False) -> None:
        super().__init__(reason)
        self.is_ours = is_ours
        """It says nothing about the host: our resolver gave no answer, or there was no time left for one."""


class Deadline:
    """The moment (monotonic) at which one fetch ends."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ours = 0.0
        """Seconds that the fetch waited for our own resources (names, memory), and not for the server."""
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left. Zero or less once it is over."""
        return self._at - time.monotonic()

    def extend(self, seconds: float) -> None:
        """Postpone the end by the time that the fetch waited for our own resources."""
        self._at += seconds
        self.ours += seconds


class Connection:
    """A connected socket whose every operation ends by the deadline; a context manager that closes it."""

    def __init__(self, raw: socket.socket, deadline: Deadline, silence_seconds: float) -> None:
        self._socket = raw
        self._deadline = deadline
        self._silence = silence_seconds

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send all of `data`. A server that hangs up meanwhile is no error here: it may have answered first.

        Raises:
            TimeoutError: the server takes nothing, or the deadline passed.
        """
        self._limit()
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise self._too_slow() from None
        except OSError:
            return

    def receive(self) -> bytes:
        """Return the next bytes, at most `RECEIVE_BYTES`; no bytes if the server has ended the connection.

        Raises:
            TimeoutError: silence, or the deadline passed.
            ConnectionError: it broke.
        """
        self._limit()
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise self._too_slow() from None
        except OSError as error:
            raise ConnectionError(f"the connection broke: {_reason(error)}") from error

    def _limit(self) -> None:
        left = self._deadline.left()
        if left <= 0:
            raise self._too_slow()
        self._socket.settimeout(min(left, self._silence))

    def _too_slow(self) -> TimeoutError:
        if self._deadline.left() <= 0:
            return TimeoutError(f"the fetch was not over after its {self._deadline.seconds:g} s")
        return TimeoutError(f"the server was silent for {self._silence:g} s")


class Connector:
    """Resolves a name once, checks every address, and connects to the very address that it checked."""

    def __init__(
        self, tls: ssl.SSLContext, allowed: tuple[Network, ...], *, connect_seconds: float, silence_seconds: float
    ) -> None:
        self._tls = tls
        self._allowed = allowed
        self._connect_seconds = connect_seconds
        self._silence_seconds = silence_seconds
        self._resolvers = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve")

    def close(self) -> None:
        """Stop the resolver threads. A look-up that still runs ends by itself."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    def connect(
        self, host: str, port: int, deadline: Deadline, *, tls: bool, note: Callable[[str], None] = lambda step: None
    ) -> Connection:
        """Return a connection to `host` (a name in ASCII or an address), made within the deadline.

        `note` is called after each step, with its name: `resolved`, `connected`, `secured`.

        Raises:
            Blocked: one of the host's addresses is not public.
            ConnectFailed: the name does not resolve, nobody answers, or the certificate is not to be trusted.
            TimeoutError: there was no time left to connect, for reasons of our own.
            OSError: this machine has no socket or memory left.
        """
        if deadline.left() <= 0:
            raise TimeoutError("nothing was left of the fetch's time when its slot came")
        reason, is_ours = f"{host} has no address", False
        endpoints = _interleave(self._resolve(host, port, deadline))[:MAX_ADDRESSES]
        note("resolved")
        for tried, (family, address) in enumerate(endpoints):
            timeout = self._timeout(deadline)
            try:
                raw = _reach(family, address, timeout)
            except OSError as error:
                if error.errno in _OUR_SHORTAGES:
                    raise
                reason = f"cannot connect to {address[0]} port {port}: {_reason(error)}"
                is_ours = self._is_ours(error, timeout) and (is_ours or not tried)
                continue
            note("connected")
            try:
                secured = self._secure(raw, host, deadline) if tls else raw
            except BaseException:
                raw.close()
                raise
            if tls:
                note("secured")
            return Connection(secured, deadline, self._silence_seconds)
        raise ConnectFailed(reason, is_ours=is_ours)

    def _secure(self, raw: socket.socket, host: str, deadline: Deadline) -> socket.socket:
        timeout = self._timeout(deadline)
        try:
            raw.settimeout(timeout)
            # A certificate names no root label: `news.example.` is verified, and asked for, as `news.example`.
            return self._tls.wrap_socket(raw, server_hostname=host.removesuffix("."))
        except ssl.SSLCertVerificationError as error:
            raise ConnectFailed(f"the certificate of {host} is not to be trusted: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise ConnectFailed(f"no TLS with {host}: {error.reason or _reason(error)}") from error
        except (OSError, ValueError) as error:
            is_ours = self._is_ours(error, timeout)
            raise ConnectFailed(f"no TLS with {host}: {_reason(error)}", is_ours=is_ours) from error

    def _is_ours(self, error: OSError | ValueError, timeout: float) -> bool:
        """Return whether a failure to connect within `timeout` says nothing about the host."""
        if isinstance(error, TimeoutError):
            return timeout < FAIR_SHARE * self._connect_seconds
        return isinstance(error, OSError) and error.errno in _OUR_NETWORK

    def _timeout(self, deadline: Deadline) -> float:
        left = deadline.left()
        if left <= 0:
            raise ConnectFailed(f"not connected when the fetch's {deadline.seconds:g} s were over", is_ours=True)
        return min(left, self._connect_seconds)

    def _resolve(self, host: str, port: int, deadline: Deadline) -> list[_Endpoint]:
        literal = _literal(host, port)
        endpoints = [literal] if literal else self._look_up(host, port, deadline)
        for _, address in endpoints:
            check_address(str(address[0]), self._allowed)
        return endpoints

    def _look_up(self, host: str, port: int, deadline: Deadline) -> list[_Endpoint]:
        # getaddrinfo takes no timeout, so it runs on a thread of its own, and goes on there when we stop waiting.
        timeout, started = self._timeout(deadline), time.monotonic()
        looking = self._resolvers.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = looking.result(timeout)
        except TimeoutError as error:
            if looking.cancel():  # it had not begun, since all resolvers were busy
                raise TimeoutError(f"no resolver was free to look up {host} in time") from error
            raise ConnectFailed(f"the name {host} was not resolved in time", is_ours=True) from error
        except (OSError, UnicodeError) as error:
            is_ours = isinstance(error, OSError) and error.errno not in _NO_SUCH_NAME
            raise ConnectFailed(f"cannot resolve {host}: {_reason(error)}", is_ours=is_ours) from error
        finally:
            deadline.ours += time.monotonic() - started
        return list(dict.fromkeys((int(family), tuple(address)) for family, _, _, _, address in found))


def _reach(family: int, address: tuple[Any, ...], timeout: float) -> socket.socket:
    raw = socket.socket(family, socket.SOCK_STREAM)
    try:
        raw.settimeout(timeout)
        raw.connect(address)
    except BaseException:
        raw.close()
        raise
    return raw


def _literal(host: str, port: int) -> _Endpoint | None:
    """Return the endpoint of a host that is an address already, so that nothing has to be resolved.

    A zone id (RFC 6874) is dropped. Addresses that need one are link-local, and `check_address` refuses those.
    """
    host = host.partition("%")[0]
    family, address = (socket.AF_INET6, (host, port, 0, 0)) if ":" in host else (socket.AF_INET, (host, port))
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return None
    return family, address


def _interleave(endpoints: list[_Endpoint]) -> list[_Endpoint]:
    """Return the endpoints with their families alternating (RFC 8305 4), so that one family can't use up all tries."""
    first = [endpoint for endpoint in endpoints if endpoint[0] == endpoints[0][0]]
    others = [endpoint for endpoint in endpoints if endpoint[0] != endpoints[0][0]]
    alternating = chain.from_iterable(zip_longest(first, others))
    return [endpoint for endpoint in alternating if endpoint is not None]


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
