"""A collector: takes spans over OTLP/HTTP on a loopback port, decodes them, and may refuse or hang."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass(frozen=True)
class Taken:
    """A span as it arrived."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    """Empty: it is a root."""
    started: int
    ended: int
    attributes: Mapping[str, Any]
    events: Sequence[str]
    links: Sequence[str]
    """Ids of spans."""
    error: str | None


class Collector:
    """What arrives. `status` is what it answers; `hanging` lets it answer nothing until `let_go`."""

    def __init__(self) -> None:
        self.status = HTTPStatus.OK
        self.hanging = False
        self.requests = 0
        self.authorization: str | None = None
        self.spans: list[Taken] = []
        self.let_go = threading.Event()
        self.url = ""

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
            self.spans += [_read(service, span) for scope in resource.scope_spans for span in scope.spans]

    def traces(self) -> dict[str, list[Taken]]:
        """Return the spans by trace, each in the order of their beginnings."""
        found: dict[str, list[Taken]] = {}
        for span in sorted(self.spans, key=lambda span: span.started):
            found.setdefault(span.trace, []).append(span)
        return found


def _read(service: str, span: Span) -> Taken:
    return Taken(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes={a.key: getattr(a.value, str(a.value.WhichOneof("value"))) for a in span.attributes},
        events=[event.name for event in span.events],
        links=[link.span_id.hex() for link in span.links],
        error=span.status.message if span.status.code == Status.STATUS_CODE_ERROR else None,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    """Yield a collector that runs for the length of the block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.requests += 1
            collector.authorization = self.headers.get("Authorization")
            if collector.hanging:
                collector.let_go.wait(60)
            status = collector.status if self.path == "/v1/traces" else HTTPStatus.NOT_FOUND
            if status is HTTPStatus.OK:
                collector.take(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        collector.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
