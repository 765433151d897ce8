"""The entry point of `feedmill`.

It imports next to nothing, so a service starts without the imports of other commands. Process 1 of a container ignores
SIGTERM unless it has a handler. The handler here ends a container at once if it is stopped during its start.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from types import FrameType

SERVICES = ("scheduler", "fetcher", "enricher", "writer", "api")
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Run the command, or become the service."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, _end)  # until the service or the command has a handler of its own
    try:
        _run()
    except KeyboardInterrupt:  # while it was imported
        sys.exit(EXIT_INTERRUPTED)


def _run() -> None:
    if len(sys.argv) == 2 and sys.argv[1] in SERVICES:
        runpy.run_module(f"services.{sys.argv[1]}", run_name="__main__", alter_sys=True)
        return
    from services.cli.__main__ import main as command

    command()


def _end(_signal: int, _frame: FrameType | None) -> None:
    os._exit(EXIT_TERMINATED)  # not by an exception, which an import under way might swallow; nothing has begun


if __name__ == "__main__":
    main()
