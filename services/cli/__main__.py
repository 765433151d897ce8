"""The `feedmill` command: its subcommands, and how it ends with an error."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from local.terminal import EXIT_PIPE, Interrupted, interrupt_on_sigterm, print_error
from services.cli.commands import dead, enrich, feeds, local, pending, services, token
from services.cli.commands.audit import audit
from services.cli.commands.completion import completion
from services.cli.commands.doctor import doctor
from services.cli.commands.fire import fire
from services.cli.commands.freshness import freshness
from services.cli.commands.hosts import hosts
from services.cli.commands.parse import parse
from services.cli.commands.sources import sources
from services.cli.commands.status import status
from services.cli.entrypoint import EXIT_INTERRUPTED
from shared.errors import FeedmillError
from shared.observability.logs import quieten_libraries

EXIT_USAGE = 2


class _Commands(TyperGroup):
    """Typer would end an interrupt and a closed pipe by itself, each with a code or a text of its own."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None
        except BrokenPipeError:
            sys.exit(EXIT_PIPE)


app = typer.Typer(
    cls=_Commands,
    help="Feedmill polls feeds politely and turns them into one deduplicated PostgreSQL table.",
    no_args_is_help=True,
    add_completion=False,  # `feedmill completion` has it
    pretty_exceptions_enable=False,
)
for command in (
    local.up,
    local.demo,
    services.batch,
    services.migrate,
    services.scheduler,
    services.fetcher,
    services.enricher,
    services.writer,
    services.api,
    local.farm,
    services.health,
    parse,
    sources,
    fire,
    status,
    audit,
    hosts,
    freshness,
    doctor,
    completion,
):
    app.command()(command)
for name, group in {"feeds": feeds, "dead": dead, "pending": pending, "token": token, "enrich": enrich}.items():
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command; an error that a person can act on is one sentence, not a traceback."""
    quieten_libraries()
    interrupt_on_sigterm()
    try:
        try:
            app()
        except (FeedmillError, OSError) as error:
            print_error(str(error))
            sys.exit(1)
        except UnicodeEncodeError:
            odd = next(
                (argument for argument in sys.argv if any("\udc80" <= part <= "\udcff" for part in argument)), None
            )
            if odd is None:
                raise
            print_error(f"an argument is no text in UTF-8: {odd!r}")
            sys.exit(EXIT_USAGE)
        except (Interrupted, KeyboardInterrupt):
            _leave()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # such as `feedmill feeds list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's end tries again, and complains
        sys.exit(EXIT_PIPE)


def _leave() -> NoReturn:
    """End at once: Python would wait for threads that nobody waits for any more, such as one that a server keeps."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)  # a second one changes nothing
    print_error("stopped")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
