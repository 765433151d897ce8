"""A command's terminal: safe output, the services' log lines made readable, and how a command ends.

Titles, URLs and errors come from strangers. `Terminal` makes every text safe to show, also within tables.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from shared.observability.display import safe_to_show

Result = TypeVar("Result")

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
LEVELS = {"warning": "yellow", "error": "bold red", "critical": "bold red"}
EXIT_PIPE = 128 + signal.SIGPIPE
_SHOWN_ELSEWHERE = {"at", "level", "service", "logger", "message", "traceback"}


class Terminal(Console):
    """A rich console without markup and emoji codes. It makes every text safe to show."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(markup=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return `text` made safe; rich calls this for each text of a table too. Line breaks stay."""
        return super().render_str(safe_to_show(text, None, lines=True), **options)

    def on_broken_pipe(self) -> None:
        """End as programs do whose reader is gone."""
        with suppress(SystemExit):  # with 1
            super().on_broken_pipe()
        sys.exit(EXIT_PIPE)


def print_error(text: str) -> None:
    """Print the reason why a command failed, in one line on standard error."""
    print(f"feedmill: {safe_to_show(text, None)}", file=sys.stderr)


class LogPrinter:
    """Prints lines to a console as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {}

    def show(self, name: str, line: str) -> None:
        """Print one line of the process `name`, also one that is not JSON."""
        colour = self._colours.setdefault(name, COLOURS[len(self._colours) % len(COLOURS)])
        text = Text(f"{name:<11}", style=colour)
        try:
            record = json.loads(line)
            text.append(f"{safe_to_show(record['at'][11:23])} ", style="dim")
            text.append(safe_to_show(record["message"]), style=LEVELS.get(record["level"], ""))
            fields = {key: value for key, value in record.items() if key not in _SHOWN_ELSEWHERE and value is not None}
            shown = "".join(f" {safe_to_show(key)}={safe_to_show(value)}" for key, value in fields.items())
            text.append(shown, style="dim")
            if "traceback" in record:
                lines = safe_to_show(record["traceback"], None, lines=True).splitlines()
                text.append("".join(f"\n    {line}" for line in lines), style="red")
        except (ValueError, KeyError, TypeError, RecursionError):
            text.append(safe_to_show(line))
        self._console.print(text, soft_wrap=True)


class Interrupted(Exception):
    """A person or a supervisor ended the command; everything is cleaned up."""


def interrupt_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C, so that `with` blocks clean up."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def run_interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`; Ctrl-C and SIGTERM cancel it.

    Raises:
        Interrupted: it was cancelled.
    """

    async def main() -> Result:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise Interrupted from None
