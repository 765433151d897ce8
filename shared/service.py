"""The frame around every service: settings, logs, telemetry, signals, exit code."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.build import announce
from shared.errors import ConfigurationError
from shared.observability.display import safe_to_show
from shared.observability.logs import configure_logging
from shared.observability.telemetry import Health, serve_telemetry
from shared.observability.traces import exporting
from shared.settings import TelemetrySettings, read_settings
from shared.waiting import pause

log = logging.getLogger(__name__)

EXIT_MISCONFIGURED = 78
"""EX_CONFIG of sysexits.h: a restart will not help, a person must act."""

BEAT_SECONDS = 1.0

S = TypeVar("S", bound=TelemetrySettings)
Serve = Callable[[S, asyncio.Event, Health], Awaitable[None]]


def run_service(name: str, settings_class: type[S], serve: Serve[S]) -> None:
    """Run `serve(settings, stop, health)` until it returns, and exit the process.

    `stop` is set on SIGTERM and SIGINT. Exit code 0 after a clean stop, 78 for a configuration that can't work,
    1 for a bug.
    """
    try:
        settings = read_settings(settings_class)
        configure_logging(name, settings.log_level, settings.log_format)
        gc.freeze()  # what is loaded by now stays: the collector has to look at it never again
        with exporting(name, settings.traces_url):
            asyncio.run(_run(name, settings, serve))
    except ConfigurationError as error:
        print(f"feedmill {name}: {safe_to_show(error, None)}", file=sys.stderr)  # noqa: T201 - may precede logging
        sys.exit(EXIT_MISCONFIGURED)


async def _run(name: str, settings: S, serve: Serve[S]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    health = Health()
    announce(name)
    with serve_telemetry(health, settings.metrics_host, settings.metrics_port) as port:
        log.info("started", extra={"metrics": f"http://{settings.metrics_host}:{port}/metrics"})
        beating = asyncio.create_task(_beat(health))
        try:
            await serve(settings, stop, health)
        finally:
            beating.cancel()
    log.info("stopped")


async def _beat(health: Health) -> None:
    while True:
        health.beat()
        await pause(BEAT_SECONDS)
