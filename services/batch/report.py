"""What a run says while it lasts: lines for a person at a terminal, else log lines as services write them."""

from __future__ import annotations

import json
import logging
import sys

from local.log_view import LogView
from local.screen import Screen
from services.batch.tally import Tally
from shared.observability.display import ascii_json
from shared.observability.logs import JsonFormatter, LogFormat, configure_logging, quieten_libraries
from shared.observability.telemetry import Health
from shared.waiting import pause

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
LINE_BEATS = 5
"""Beats between two lines of progress."""

SERIOUS = frozenset({"warning", "error", "critical"})


class _Shown(logging.Handler):
    """Shows records as `feedmill up` shows those of services."""

    def __init__(self, view: LogView) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(JsonFormatter("batch"))
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.show("batch", self.format(record))


class Report:
    """See the module. Sends the logging of this process to standard error."""

    def __init__(self, level: str, log_format: LogFormat) -> None:
        self._console = Screen(stderr=True)
        self._view = LogView(self._console)
        self._is_terminal = sys.stderr.isatty()
        if self._is_terminal:
            logging.basicConfig(handlers=[_Shown(self._view)], level=level, force=True)
            quieten_libraries()
        else:
            configure_logging("batch", level, log_format)

    def say(self, text: str) -> None:
        """Tell what happens."""
        if self._is_terminal:
            self._console.print(text, soft_wrap=True)
        else:
            log.info(text)

    def show_line(self, name: str, line: str) -> None:
        """Pass on a line of a service that runs beside us: at a terminal, only if something is the matter."""
        if not self._is_terminal:
            print(line, file=sys.stderr, flush=True)
        elif _level(line) in SERIOUS:
            self._view.show(name, line)

    async def follow(self, tally: Tally, health: Health) -> None:
        """Tell how far the run has come, until cancelled."""
        beats = 0
        while True:
            health.beat()
            await pause(BEAT_SECONDS)
            beats += 1
            if beats % LINE_BEATS:
                continue
            if self._is_terminal:
                self._console.print(
                    f"{tally.claimed:,} feeds claimed, {tally.attempts:,} attempts, {tally.entries:,} entries"
                )
            else:
                log.info("progress", extra=tally.as_json())

    def show_end(self, tally: Tally, *, as_json: bool) -> None:
        """Print the summary on standard output, and note it in the log."""
        if not self._is_terminal:
            log.info("ended", extra=tally.as_json())
        if as_json:
            print(ascii_json(tally.as_json()))
        else:
            for line in tally.in_words():
                print(line)


def _level(line: str) -> str:
    """Return the level of a JSON log line; what is none, a service says before it can log."""
    try:
        return str(json.loads(line)["level"])
    except (ValueError, KeyError, TypeError):
        return "error"
