"""The installed command in a real shell: completion with Tab, and a reader that leaves early."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.admin.registry import NewFeed, add_feed, connect

BIN = Path(sys.executable).parent
COMPLETE = r"""
source <(feedmill completion bash)
COMP_WORDS=(%s) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
$(complete -p feedmill | sed -E 's/.*-F ([^ ]+).*/\1/') feedmill "${COMP_WORDS[COMP_CWORD]}" ""
printf '%%s\n' "${COMPREPLY[@]}"
"""


def bash(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--norc", "-c", script],
        check=False,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("feedmill stat", {"status"}),
        ("feedmill feeds li", {"list"}),
        ("feedmill feeds list --gr", {"--grep"}),
        ("feedmill completion z", {"zsh"}),
    ],
)
def test_bash_completes_commands_and_options(typed: str, offered: set[str]) -> None:
    done = bash(COMPLETE % typed)
    assert (set(done.stdout.split()), done.stderr, done.returncode) == (offered, "", 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_script(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    script = bash(f"feedmill completion {shell}").stdout
    assert "_FEEDMILL_COMPLETE" in script
    subprocess.run([shell, "-n" if shell != "fish" else "--no-execute", "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("arguments", ["list --json", "list"])
def test_a_reader_that_leaves_early_is_no_error_to_speak_of(database_url: str, arguments: str) -> None:
    with connect(database_url) as connection:
        for number in range(3):
            add_feed(connection, NewFeed(f"http://site-{number}.example/feed"))
    done = bash(f"feedmill feeds {arguments} | sleep 0; echo ${{PIPESTATUS[0]}}", FEEDMILL_DATABASE_URL=database_url)
    assert (done.stdout, done.stderr) == ("141\n", "")
