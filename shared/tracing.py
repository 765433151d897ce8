"""The port to traces: spans, which are nothing while traces are off.

A message carries the span under which it is handled (`Message.span`), also from one thread to another. What handles it
starts spans below that one. `shared.observability.otlp` implements both classes with OpenTelemetry, and only a process
with FEEDMILL_TRACES_URL imports that. docs/reference/traces.md lists spans and attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

Kind = Literal["internal", "client", "producer", "consumer"]

Value = str | int | float | bool | None
"""An attribute's value; None is left out."""

Headers = Mapping[str, str | int]

TRACE_HEADER = "traceparent"
"""The header with trace and parent (W3C Trace Context). A message without it is not traced."""

SENT_HEADER = "sent_at_ns"
"""When a traced message was published, in nanoseconds since 1970: AMQP's own time stamp has whole seconds."""


class Span:
    """A span that nobody records, as all are while traces are off. It is false, and its children are itself.

    A context manager that ends it, with the name of the exception's class as the error if there is one. Any thread may
    call it. Attributes have the names of `shared.observability.otlp.ATTRIBUTES`.
    """

    def __bool__(self) -> bool:
        """Return whether it is recorded."""
        return False

    def start(
        self,
        name: str,
        kind: Kind = "internal",
        *,
        at: int | None = None,
        links: Sequence[Span] = (),
        **attributes: Value,
    ) -> Span:
        """Start a child; `at` (nanoseconds since 1970) if it began earlier."""
        return self

    def note(self, **attributes: Value) -> None:
        """Set attributes."""

    def event(self, name: str) -> None:
        """Note that something happened now."""

    def fail(self, error: str) -> None:
        """Mark it as failed. `error` is a short name, never a text that a stranger wrote."""

    def end(self, error: str | None = None) -> None:
        """End it, as failed if there is an error. Further calls do nothing."""

    def headers(self) -> Headers:
        """Return the headers by which the reader of a message goes on with the trace."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind.__name__ if kind else None)


NO_SPAN = Span()


class Tracer:
    """Begins traces; this one, which is used while traces are off, begins none."""

    def pick(self, jobs: int) -> Sequence[int]:
        """Return which of so many jobs that are issued now are traced, by their places."""
        return ()

    def root(
        self,
        name: str,
        *,
        parent: str | None = None,
        at: int | None = None,
        links: Sequence[Span] = (),
        **attributes: Value,
    ) -> Span:
        """Start a span of a trace of its own, or below `parent` (a `traceparent`), if that is one."""
        return NO_SPAN

    def resume(self, headers: Headers) -> Span:
        """Return the span whose `Span.headers` these are, to start children of it; a false one if there are none."""
        return NO_SPAN


OFF = Tracer()
_in_use = OFF


def tracer() -> Tracer:
    """Return the tracer of this process."""
    return _in_use


def use(chosen: Tracer) -> None:
    """Make `chosen` the tracer of this process."""
    global _in_use  # noqa: PLW0603 - one per process, as logs and metrics
    _in_use = chosen
