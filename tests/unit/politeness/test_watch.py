from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.fetcher.politeness.decisions import Report
from services.fetcher.politeness.limits import Limits
from services.fetcher.politeness.metrics import BoardWatch, TimedLock
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.workers import Workers
from shared.broker.prefetch import PrefetchLimit
from shared.observability.logs import JsonFormatter


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(1)
    yield workers
    workers.close()


def busy_board(lock: TimedLock) -> Scoreboard[Any]:
    board: Scoreboard[Any] = Scoreboard(Limits(), lock)
    for ticket in ("1", "2"):
        board.admit("news.example", ticket, 100.0)
    board.next_decision(100.0)
    board.confirm_start("1", 100.0)
    board.sent("1", 100.0)
    return board


def test_the_lock_knows_how_long_it_was_waited_for() -> None:
    lock, waiting = TimedLock(), threading.Event()

    def wait_for_it() -> None:
        waiting.set()
        with lock:
            pass

    with lock:
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        waiting.wait(30)
        while not lock.contended:
            time.sleep(0)
    thread.join()
    assert lock.waited > 0
    assert lock.longest == lock.waited


def test_the_gauges_follow_the_board(workers: Workers) -> None:
    lock = TimedLock()
    watch = BoardWatch(busy_board(lock), lock, workers, PrefetchLimit(400), lambda: 200.0)
    watch.set_gauges()
    values = {
        state: REGISTRY.get_sample_value("feedmill_groups", {"state": state}) for state in ("all", "active", "recent")
    }
    assert values == {"all": 1, "active": 1, "recent": 0}
    assert REGISTRY.get_sample_value("feedmill_jobs_held") == 1
    assert REGISTRY.get_sample_value("feedmill_jobs_ready") == 1


def test_a_dump_tells_of_groups_and_threads_and_masks_what_is_secret(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    lock, running, done = TimedLock(), threading.Event(), threading.Event()
    board = busy_board(lock)
    watch = BoardWatch(board, lock, workers, PrefetchLimit(400), lambda: 101.0)

    def work() -> None:
        running.set()
        done.wait(30)

    workers.submit("feed 7 http://me:secret@news.example/", work)
    assert running.wait(30)
    with caplog.at_level(logging.CRITICAL):
        watch.log_dump()
    done.set()
    line = JsonFormatter("fetcher").format(caplog.records[0])
    assert "secret" not in line
    dump = json.loads(line)
    assert dump["threads"][0]["task"] == "feed 7 http://***@news.example/"
    assert (dump["groups"][0]["group"], dump["groups"][0]["held"]) == ("news.example", 1)
    assert dump["summary"]["active"] == 1
    board.finish("1", 102.0, Report(0.1))
