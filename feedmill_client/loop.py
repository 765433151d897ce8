"""What the blocking clients have in common: the loop over claimed articles."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar

from feedmill_client import calls
from feedmill_client.calls import Article, Call

log = logging.getLogger(__name__)
Result = TypeVar("Result")

NAP_SECONDS = 0.25
"""How late a `stop()` is noticed while waiting."""


class Consumer(ABC):
    """One consumer with one connection, which it opens when needed, and again after a loss. A context manager."""

    AWAY: ClassVar[tuple[type[Exception], ...]]
    """The server is away or can't serve now. Every call may be tried again after these."""

    def __init__(self) -> None:
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def stop(self) -> None:
        """End `batches` and `run` after the current article. Signal handlers and other threads may call it."""
        self._stopped = True

    @abstractmethod
    def claim(self, most: int = 50, lease: timedelta = calls.LEASE) -> list[Article]:
        """Claim up to `most` articles, the oldest first."""

    @abstractmethod
    def ack(self, articles: Sequence[Article]) -> int:
        """Acknowledge and remove them; return how many. Articles whose text has changed meanwhile stay pending."""

    @abstractmethod
    def fail(self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None) -> int:
        """Count a failure: they come again after a pause, or become dead. Return how many this consumer still held."""

    @abstractmethod
    def renew(self, articles: Sequence[Article], lease: timedelta = calls.LEASE) -> list[Article]:
        """Start their lease anew; return the articles that this consumer still holds."""

    @abstractmethod
    def release(self, articles: Sequence[Article]) -> int:
        """Release them for other consumers; return how many this consumer still held."""

    @abstractmethod
    def _wait(self, most: int, lease: timedelta) -> list[Article]:
        """Wait for new articles, but not for ever; return those that were claimed meanwhile, if any."""

    def batches(self, most: int = 50, lease: timedelta = calls.LEASE) -> Iterator[list[Article]]:
        """Yield claimed articles until `stop()`; wait while there are none, and while the server is away."""
        with contextlib.suppress(*self.AWAY):  # stopped while it was away
            while not self._stopped:
                articles = self.patiently(lambda: self.claim(most, lease))
                if articles := articles or self.patiently(lambda: self._wait(most, lease)):
                    yield articles

    def run(self, handle: Callable[[Article], object], *, batch: int = 50, lease: timedelta = calls.LEASE) -> None:
        """Call `handle` with each article until `stop()`. An exception fails the article, otherwise it is acknowledged.

        Leases are renewed between articles: `lease` must be more than twice the time of the slowest article.
        Raises one of `self.AWAY` if the server is away after `stop()`: unacknowledged articles come again.
        """
        for articles in self.batches(batch, lease):
            self._work_off(articles, handle, lease)

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Return `call()`, repeated while the server is away; after `stop()` at most once more."""
        for attempt in itertools.count():
            try:
                return call()
            except self.AWAY as error:
                self.close()
                if self._stopped:
                    raise
                log.warning("the server is away, trying again: %s", error)
                self._sleep(calls.back_off(attempt))
        raise AssertionError

    def _work_off(self, articles: list[Article], handle: Callable[[Article], object], lease: timedelta) -> None:
        work = calls.work_off(articles, lease, lambda: self._stopped)
        step = calls.advance(work, None)
        interruption: BaseException | None = None
        while step is not None:
            answer: object = None
            if not isinstance(step, Article):
                answer = self._call(step)
            else:
                try:
                    handle(step)
                except Exception as error:  # noqa: BLE001 - it is stored with the article
                    log.warning("article %s failed: %r", step.md5, error)
                    answer = error
                except BaseException as error:  # noqa: BLE001 - raised below, after the articles are released
                    self.stop()
                    answer = interruption = error
            step = calls.advance(work, answer)
        if interruption is not None:
            raise interruption

    def _call(self, call: Call) -> Any:
        return self.patiently(lambda: getattr(self, call.method)(*call.arguments))

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, NAP_SECONDS))
