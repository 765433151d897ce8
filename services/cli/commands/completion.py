"""The command `feedmill completion`: what shells need in order to complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import (  # type: ignore[attr-defined]  # for its own `--show-completion`
    completion_init,
    get_completion_script,
)

completion_init()  # from here on the command answers what these scripts ask


class Shell(StrEnum):
    """A shell that completes words by itself."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that reads it.")]) -> None:
    """Print a script for completion with Tab, such as for ~/.bashrc: source <(feedmill completion bash)."""
    print(get_completion_script(prog_name="feedmill", complete_var="_FEEDMILL_COMPLETE", shell=shell.value))
