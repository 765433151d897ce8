"""Finds the processes of a directory: they name it in their command line or environment."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def remaining_processes(directory: Path) -> list[str]:
    """Return the command lines of live processes, this one excepted, that mention `directory`."""
    found = []
    needle = str(directory).encode()
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit() or int(proc.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command, environment = (proc / "cmdline").read_bytes(), (proc / "environ").read_bytes()
            if command and needle in command + environment:
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found
