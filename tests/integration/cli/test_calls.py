"""What a command says of an API that is away, or that is none; and where it sends its token."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest
import trustme
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.calls.opening import open_api
from shared.errors import ConfigurationError, FeedmillError, Unavailable
from tests.integration.fetcher.raw_server import answer, saying, serving
from tests.integration.waiting import BLOCKED

TOKEN = "fm_very-secret"
PROBLEM = {"type": "about:blank", "title": "Whatever", "detail": "no such thing: do this", "errors": []}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_API_TOKEN", TOKEN)


def problem(status: int, **headers: str) -> bytes:
    body = json.dumps(PROBLEM | {"status": status}).encode()
    return answer(status, body, Content_Type="application/problem+json", **headers)


def ask(monkeypatch: pytest.MonkeyPatch, url: str, path: str = "/api/feeds") -> object:
    monkeypatch.setenv("FEEDMILL_API_URL", url)
    with open_api() as api:
        return api.get(path, object)


def refusal(monkeypatch: pytest.MonkeyPatch, url: str) -> FeedmillError:
    with pytest.raises(FeedmillError) as caught:
        ask(monkeypatch, url)
    assert TOKEN not in str(caught.value)
    return caught.value


def test_a_prefix_stays_and_the_token_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(saying(answer(body=b"{}"))) as server:
        for written in ("/feedmill", "/feedmill/", "/feedmill/api", "/feedmill/api/"):
            assert ask(monkeypatch, server.url(written)) == {}
        heads = server.requests
    assert {head.splitlines()[0] for head in heads} == {"GET /feedmill/api/feeds HTTP/1.1"}
    assert all(f"Authorization: Bearer {TOKEN}" in head for head in heads)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@127.0.0.1/",
        "http://127.0.0.1/?token=secret",
        "http://127.0.0.1/#secret",
        "http://:8080/secret",
        "http://127.0.0.1:99999/secret",
        "http://[::1/secret",
        "ftp://127.0.0.1/secret",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    refused = refusal(monkeypatch, url)
    assert "FEEDMILL_API_URL" in str(refused)
    assert "secret" not in str(refused) or url.startswith("ftp")


@pytest.mark.parametrize("written", [f"{TOKEN} x", f"{TOKEN}\nX: y", f"{TOKEN}ü"])
def test_a_token_that_is_none_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("FEEDMILL_API_TOKEN", written)
    assert "FEEDMILL_API_TOKEN has spaces or letters" in str(refusal(monkeypatch, "http://127.0.0.1:1"))


def test_the_line_end_of_a_token_s_file_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_API_TOKEN", f" {TOKEN}\n")
    with serving(saying(answer(body=b"1"))) as server:
        assert ask(monkeypatch, server.url("")) == 1
        assert f"Authorization: Bearer {TOKEN}\r\n" in server.requests[0]


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    refused = refusal(monkeypatch, f"http://127.0.0.1:{port}")
    assert isinstance(refused, Unavailable)
    assert str(refused) == (
        f"nothing answers at http://127.0.0.1:{port} (Connection refused): look whether the API runs, and at"
        " FEEDMILL_API_URL"
    )


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (problem(404), ConfigurationError, "no such thing: do this"),
        (problem(503), Unavailable, "no such thing: do this"),
        (problem(401), ConfigurationError, "(the token is that of FEEDMILL_API_TOKEN)"),
        (problem(403), ConfigurationError, "(the token is that of FEEDMILL_API_TOKEN)"),
        (answer(404, b"<html>", Content_Type="text/html"), ConfigurationError, "is FEEDMILL_API_URL the API's address"),
        (answer(200, b"<html>", Content_Type="text/html"), ConfigurationError, "is FEEDMILL_API_URL the API's address"),
        (answer(200, b"{"), ConfigurationError, "is FEEDMILL_API_URL the API's address"),
        (answer(500, b'{"error": 1}', Content_Type="application/json"), ConfigurationError, "status 500"),
        (answer(502, b"Bad Gateway", Content_Type="text/plain"), Unavailable, "look whether the API behind it runs"),
        (answer(200, b"{}", Content_Length="99"), Unavailable, "ended early"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", ConfigurationError, "does not speak http"),
        (b"", Unavailable, "ended early"),
    ],
)
def test_what_answers_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, reply: bytes, kind: type[FeedmillError], said: str
) -> None:
    with serving(saying(reply)) as server:
        refused = refusal(monkeypatch, server.url(""))
    assert isinstance(refused, kind)
    assert said in str(refused)


def test_who_has_no_token_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDMILL_API_TOKEN")
    with serving(saying(problem(401))) as server:
        assert "FEEDMILL_API_TOKEN is not set" in str(refusal(monkeypatch, server.url("")))


def test_a_redirect_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(saying(answer(body=b"{}"))) as other,
        serving(saying(answer(307, Location=other.url("/api/feeds")))) as server,
    ):
        refused = refusal(monkeypatch, server.url(""))
        assert other.requests == []
    assert f"redirect to '{other.url('/api/feeds')}', which is not followed" in str(refused)


def test_a_token_in_the_clear_is_warned_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FEEDMILL_API_URL", "http://feedmill.example")
    with open_api():
        assert "warning: the token goes to feedmill.example in the clear" in capsys.readouterr().err
    monkeypatch.setenv("FEEDMILL_API_URL", "http://127.0.0.5:8080")
    with open_api():
        assert capsys.readouterr().err == ""


def test_a_certificate_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with serving(saying(answer(body=b"{}")), tls=tls) as server:
        assert "is not to be trusted" in str(refusal(monkeypatch, server.url("")))
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert ask(monkeypatch, server.url("")) == {}
    with serving(saying(answer(body=b"{}")), hasty=True) as plain:
        https = plain.url("").replace("http:", "https:")
        assert "does not speak https" in str(refusal(monkeypatch, https))


def test_a_body_is_streamed_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"a" * 10
        yield b"b" * 10

    def script(connection: socket.socket, head: str) -> None:
        sent = head.partition("\r\n\r\n")[2].encode()  # the body may come together with its head
        while not sent.endswith(b"0\r\n\r\n"):
            sent += connection.recv(1000)
        assert sent == b"a\r\naaaaaaaaaa\r\na\r\nbbbbbbbbbb\r\n0\r\n\r\n"
        connection.sendall(answer(body=b'{"n": 1}\n{"n"'))

    with serving(script) as server:
        monkeypatch.setenv("FEEDMILL_API_URL", server.url(""))
        with open_api() as api:
            lines = api.lines("POST", "/api/feeds/import", content=content())
            assert next(lines) == {"n": 1}
            with pytest.raises(ConfigurationError, match="not one that this command knows"):
                next(lines)
    with serving(saying(problem(422))) as server:
        monkeypatch.setenv("FEEDMILL_API_URL", server.url(""))
        with open_api() as api, pytest.raises(ConfigurationError, match="no such thing: do this"):
            list(api.lines("GET", "/api/x"))


def test_an_answer_that_nobody_reads_to_its_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(saying(answer(body=b"1\n", Content_Length="100"))) as server:
        monkeypatch.setenv("FEEDMILL_API_URL", server.url(""))
        with open_api() as api:
            lines = api.lines("GET", "/api/x")
            assert next(lines) == 1
        lines.close()  # type: ignore[attr-defined]  # after the API: the loop is gone, and nothing is to be done


def silent(connection: socket.socket, _head: str) -> None:
    connection.recv(1)  # until the command gives up


def beginning(connection: socket.socket, _head: str) -> None:
    connection.sendall(answer(body=b"1\n", Content_Length="100"))
    connection.recv(1)


LAUNCHER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
from services.cli.__main__ import main
main()
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("script", [silent, beginning])
def test_an_interrupt_ends_a_call(script: Callable[[socket.socket, str], None], signum: signal.Signals) -> None:
    with serving(script) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, "feeds", "list"],
            env={"FEEDMILL_API_URL": server.url("")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while not server.requests:
                assert process.poll() is None, process.stderr
            process.send_signal(signum)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, said) == (130, "feedmill: stopped\n")


@pytest.mark.parametrize("interrupts", [0, 1, 2])
def test_a_table_that_somebody_keeps_locked_holds_no_command(database_url: str, interrupts: int) -> None:
    with psycopg.connect(database_url) as locking, psycopg.connect(database_url, autocommit=True) as watching:
        locking.execute("LOCK TABLE feeds")
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, "feeds", "export"],
            env={"FEEDMILL_DATABASE_URL": database_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while not watching.execute(BLOCKED).rowcount:
                assert process.poll() is None, process.stderr
            for _ in range(interrupts):
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
    if interrupts:
        assert (process.returncode, said) == (130, "feedmill: stopped\n")
    else:
        assert process.returncode == 1
        assert "lock timeout" in said


def test_help_needs_no_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_API_URL", "http://127.0.0.1:1")
    assert CliRunner().invoke(app, ["feeds", "--help"]).exit_code == 0
