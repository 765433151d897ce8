"""The services' JSON log lines, made readable, one colour per service."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from shared.observability.display import safe_to_show

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
LEVELS = {"warning": "yellow", "error": "bold red", "critical": "bold red"}
_SHOWN_ELSEWHERE = {"at", "level", "service", "logger", "message", "traceback"}


class LogView:
    """Prints lines to a console as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {}

    def show(self, name: str, line: str) -> None:
        """Print one line of the process `name`; one that is not JSON, too."""
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
