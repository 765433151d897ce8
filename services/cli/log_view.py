"""The services' JSON log lines, made readable, one colour per service."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
LEVELS = {"warning": "yellow", "error": "bold red", "critical": "bold red"}
_SHOWN_ELSEWHERE = {"at", "level", "service", "logger", "message", "traceback"}


class LogView:
    """Prints lines to a console as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {}

    def show(self, name: str, line: str) -> None:
        """Print one line of the process `name`; one that is not JSON as it is."""
        colour = self._colours.setdefault(name, COLOURS[len(self._colours) % len(COLOURS)])
        text = Text(f"{name:<11}", style=colour)
        try:
            record = json.loads(line)
            text.append(f"{record['at'][11:23]} ", style="dim")
            text.append(record["message"], style=LEVELS.get(record["level"], ""))
            fields = {key: value for key, value in record.items() if key not in _SHOWN_ELSEWHERE and value is not None}
            text.append("".join(f" {key}={value}" for key, value in fields.items()), style="dim")
            if "traceback" in record:
                text.append("\n" + record["traceback"], style="red")
        except (ValueError, KeyError, TypeError):
            text.append(line)
        self._console.print(text, soft_wrap=True)
