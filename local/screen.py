"""The terminal of a command: whatever is printed on it, strangers' text in it can't act.

A class rather than care at each call: titles, URLs and errors come from everywhere, also within tables.
"""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from shared.observability.display import safe_to_show


class Screen(Console):
    """A rich console without markup and emoji codes, which shows every text by `shared/observability/display.py`."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(markup=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return `text` as it is shown; rich asks for each text of a table, too. Its lines stay lines."""
        return super().render_str(safe_to_show(text, None, lines=True), **options)


def print_error(text: str) -> None:
    """Print why a command ended, in one line on standard error."""
    print(f"feedmill: {safe_to_show(text, None)}", file=sys.stderr)
