"""The threads that fetch and read."""

from __future__ import annotations

import threading
import weakref

from services.fetcher.politeness.workers import Workers


class Task:
    """Something that may hold a large result."""

    def __init__(self, done: threading.Event) -> None:
        self._done = done

    def __call__(self) -> None:
        self._done.set()


def test_an_idle_thread_holds_nothing_of_its_last_task() -> None:
    workers = Workers(1)
    done, gone = threading.Event(), threading.Event()
    task = Task(done)
    weakref.finalize(task, gone.set)
    workers.submit("a feed", task)
    assert done.wait(10)
    del task
    assert gone.wait(10)
    workers.close()


def test_it_is_known_what_a_thread_is_at() -> None:
    workers = Workers(1)
    begun, go_on = threading.Event(), threading.Event()

    def task() -> None:
        begun.set()
        go_on.wait(10)

    workers.submit("feed 7", task)
    assert begun.wait(10)
    assert [busy.task for busy in workers.busy()] == ["feed 7"]
    go_on.set()
    workers.close()
    assert workers.busy() == []
