from __future__ import annotations

import socket

import pytest


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit test that reaches for the network fails, and says so."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a unit test opened a connection; it belongs into tests/integration")

    for name in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
