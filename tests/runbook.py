"""The commands that a page of the docs tells people to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer

from services.cli.__main__ import app

DOCS = Path(__file__).parents[1] / "docs" / "how-to"
PLACEHOLDER = re.compile(r"(?<![\w.=])[A-Z]{2,}[0-9]?(?![\w=])")
"""A word in capitals is for people to fill in. (SQL is in quotes.)"""


def read_page(name: str) -> str:
    """Return the text of a page of docs/how-to."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def commands_in(text: str, program: str) -> list[str]:
    """Return the indented lines that begin with a program, each once, without comments; whole if they go on."""
    joined = re.sub(r" \\\n\s*", " ", text)
    begins = re.escape(program)
    lines = re.findall(rf"^    ({begins} .+<<'END'\n(?:    .+\n)+?    END|{begins} .+)$", joined, re.MULTILINE)
    return list(dict.fromkeys(re.sub(r"\s{2,}#.*", "", line.replace("\n    ", "\n")).strip() for line in lines))


def has_placeholder(command: str) -> bool:
    """Return whether somebody has to fill a word in."""
    return bool(PLACEHOLDER.search(re.sub(r"\"[^\"]*\"|'[^']*'", "", command)))


def arguments_of_feedmill(command: str) -> list[str] | None:
    """Return what a line of Compose or kubectl gives to `feedmill`, if it runs that."""
    found = re.search(r"(?:run --rm (?:--no-deps )?feedmill|exec (?:-T )?[a-z]+ feedmill|-- feedmill)\b(.*)$", command)
    return shlex.split(found.group(1)) if found else None


def parse_feedmill(words: list[str]) -> None:
    """Raise an error unless `feedmill` takes these arguments."""
    command: Any = typer.main.get_command(app)
    name = "feedmill"
    while hasattr(command, "resolve_command"):
        context = command.make_context(name, list(words))
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        name, command, words = command.resolve_command(context, rest)
    command.make_context(name, list(words))
