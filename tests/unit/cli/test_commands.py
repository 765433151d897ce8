"""What holds for every command: help, `--json`, one end for each kind of error."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from local.terminal import EXIT_PIPE
from services.cli.__main__ import EXIT_USAGE, app
from services.cli.commands.feed_lists import EXIT_REFUSED
from services.cli.entrypoint import EXIT_INTERRUPTED
from shared.service import EXIT_MISCONFIGURED

SERVICE = "runs until it is stopped, and logs (FEEDMILL_LOG_FORMAT=json)"
WITHOUT_JSON = {
    "up": SERVICE,
    "scheduler": SERVICE,
    "fetcher": SERVICE,
    "enricher": SERVICE,
    "writer": SERVICE,
    "api": SERVICE,
    "farm": SERVICE,
    "migrate": "its exit code says all",
    "health": "its exit code says all",
    "completion": "prints a script",
    "feeds export": "prints a file",
    "pending claim": "prints JSON anyway, an article a line",
}
"""Why these have no `--json`."""


def commands() -> Iterator[tuple[str, Any]]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        yield from ((f"{name} {sub}", of) for sub, of in inner.items())
        if not inner or command.invoke_without_command:
            yield name, command


ALL = dict(commands())


def options_of(command: Any) -> dict[str, Any]:
    return {option: parameter for parameter in command.params for option in parameter.opts if option.startswith("-")}


@pytest.mark.parametrize("name", ALL)
def test_a_command_prints_json_for_programs(name: str) -> None:
    has_json = "--json" in options_of(ALL[name])
    assert has_json != (name in WITHOUT_JSON), f"feedmill {name}: give it --json, or say in WITHOUT_JSON why not"


@pytest.mark.parametrize("name", ALL)
def test_a_command_and_its_options_say_what_they_do(name: str) -> None:
    assert ALL[name].help
    assert [option for option, parameter in options_of(ALL[name]).items() if not parameter.help] == []


def test_an_option_means_the_same_in_every_command() -> None:
    """Options that several commands have stand in services/cli/options.py: the same name, the same words."""
    texts: dict[str, set[str]] = {}
    for command in ALL.values():
        for option in {"--json", "--wide", "--utc", "--yes", "--grep"} & options_of(command).keys():
            texts.setdefault(option, set()).add(options_of(command)[option].help)
    assert {option: found for option, found in texts.items() if len(found) > 1} == {}


def test_every_exit_code_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page.partition("## Exit codes")[2], re.MULTILINE)}
    used = {0, 1, EXIT_USAGE, EXIT_REFUSED, EXIT_MISCONFIGURED, EXIT_INTERRUPTED, EXIT_PIPE}
    assert used <= documented


def test_a_command_begins_without_what_few_need() -> None:
    """FastAPI, and all that runs private servers, take longer than a call to an API elsewhere."""
    few_need = {"fastapi", "uvicorn", "matplotlib", "httpx", "psycopg", "pydantic", "services.fetcher.parse"}
    code = f"import sys, services.cli.__main__; print(sorted({few_need} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
