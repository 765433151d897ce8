"""What holds for every command: help, `--json`, one end for each kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from services.cli.__main__ import app

SERVICE = "runs until it is stopped, and logs (FEEDMILL_LOG_FORMAT=json)"
WITHOUT_JSON = {
    "up": SERVICE,
    "scheduler": SERVICE,
    "fetcher": SERVICE,
    "writer": SERVICE,
    "api": SERVICE,
    "farm": SERVICE,
    "migrate": "its exit code says all",
    "health": "its exit code says all",
    "completion": "prints a script",
    "feeds export": "prints a file",
}
"""Why these have no `--json`."""


OWED = {
    "feeds add",
    "feeds set",
    "feeds fetch",
    "feeds remove",
    "dead show",
    "dead requeue",
    "dead purge",
    "pending ack",
    "pending release",
    "pending bury",
    "pending revive",
}
"""These will have it."""


def commands() -> Iterator[tuple[str, Any]]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        yield from ((f"{name} {sub}", of) for sub, of in inner.items())
        if not inner or command.invoke_without_command:
            yield name, command


ALL = dict(commands())


def options_of(command: Any) -> dict[str, Any]:
    return {option: parameter for parameter in command.params for option in parameter.opts if option.startswith("-")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xfail(name in OWED, reason="owed")) for name in ALL]
)
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
