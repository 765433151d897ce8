"""`feedmill feeds add PAGE` at a real terminal: it asks which feed is meant."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.integration.fetcher.raw_server import answer, saying, serving

TITLE = "News [/b] :smile:\x1b]0;x\x07\x9b2J\u202e\u200b"
PAGE = f"""<html><head><link rel="alternate" type="application/rss+xml" title="{TITLE}" href="http://a.example/rss">
<link rel="alternate" type="application/atom+xml" href="http://a.example/atom"></head></html>""".encode()
PROMPT = "Which feed [1]: "
LAUNCHER = """
import os, signal, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))  # the first that a session opens is its own: Ctrl-C comes from there
signal.signal(signal.SIGINT, signal.SIG_DFL)  # who runs the tests may ignore it
os.execv(sys.executable, [sys.executable, "-m", "services.cli", *sys.argv[1:]])
"""
SECONDS = 20.0
"""A process has to start; half a second on a machine that is not busy."""


AGAIN_SECONDS = 5.0


class Terminal:
    """A process that has a terminal, and what it showed there."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0

    def wait_for(self, text: str) -> None:
        """Read until `text` is shown behind what was waited for before."""
        end = time.monotonic() + SECONDS
        while (found := self.shown.find(text, self._seen)) < 0:
            assert time.monotonic() < end, self.shown
            assert self._read(), self.shown
        self._seen = found + len(text)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def exit_code(self) -> int:
        while self._read():
            pass
        return self._process.wait(SECONDS)

    def exit_code_after(self, key: str) -> int:
        """Press a key, and again if nothing happens, as a person does.

        CPython shows the prompt a moment before it waits for input: a SIGINT in between is taken note of, and wakes
        nobody until something is typed (readline_until_enter_or_signal).
        """
        for _ in range(3):
            self.type(key)
            while select.select([self._ours], [], [], AGAIN_SECONDS)[0]:
                if not self._read():
                    return self._process.wait(SECONDS)
        return self.exit_code()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], SECONDS)[0]:
            return False
        try:
            found = os.read(self._ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.shown += found.decode()
        return bool(found)


@pytest.fixture
def add(database_url: str) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []
    with serving(saying(answer(200, PAGE))) as server:

        def run() -> Terminal:
            environment = {
                "FEEDMILL_DATABASE_URL": database_url,
                "FEEDMILL_AMQP_URL": "amqp://127.0.0.1:1/",
                "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
                "TERM": "dumb",  # no colours between the words
            }
            opened.append(Terminal(["feeds", "add", server.url("/")], environment))
            opened[-1].wait_for(PROMPT)
            return opened[-1]

        yield run
    for terminal in opened:
        terminal.close()


def registered(database_url: str) -> list[str]:
    with psycopg.connect(database_url) as connection:
        return [url for (url,) in connection.execute("SELECT url FROM feeds").fetchall()]


@pytest.mark.parametrize(("typed", "taken"), [("2\n", "http://a.example/atom"), ("\n", "http://a.example/rss")])
def test_it_asks_which_feed_and_takes_that(
    add: Callable[[], Terminal], database_url: str, typed: str, taken: str
) -> None:
    terminal = add()
    assert r"1  News [/b] :smile:\u001b]0;x\u0007\u009b2J\u202e\u200b  http://a.example/rss" in terminal.shown
    assert not set("\x1b\x07\x9b\u202e\u200b") & set(terminal.shown)
    assert "2  (no title)  http://a.example/atom" in terminal.shown
    terminal.type(typed)
    assert terminal.exit_code() == 0, terminal.shown
    assert f"a page with 2 feeds; took {taken}" in terminal.shown
    assert registered(database_url) == [taken]


def test_it_asks_again_after_what_is_no_number_of_a_feed(add: Callable[[], Terminal], database_url: str) -> None:
    terminal = add()
    for typed in ("3\n", "0\n", "atom\n", "\N{EURO SIGN}\x07\n", "1.0\n"):
        terminal.type(typed)
        terminal.wait_for("a number from 1 to 2, please")
        terminal.wait_for(PROMPT)
    terminal.type("2\n")
    assert terminal.exit_code() == 0, terminal.shown
    assert registered(database_url) == ["http://a.example/atom"]


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_a_person_who_gives_up_registers_nothing(add: Callable[[], Terminal], database_url: str, key: str) -> None:
    terminal = add()
    assert terminal.exit_code_after(key) == 130, terminal.shown
    assert "Traceback" not in terminal.shown
    assert "feedmill: stopped" in terminal.shown
    assert registered(database_url) == []
