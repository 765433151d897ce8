"""The `feedmill` command: its subcommands, and how it ends with an error."""

from __future__ import annotations

import sys

import typer

from local.terminal import Interrupted, print_error
from services.cli.commands import dead, feeds, local, pending, services
from services.cli.commands.fire import fire
from services.cli.commands.parse import parse
from services.cli.commands.status import status
from shared.errors import FeedmillError
from shared.observability.logs import quieten_libraries

EXIT_INTERRUPTED = 130
EXIT_USAGE = 2

app = typer.Typer(
    help="Feedmill polls feeds politely and turns them into one deduplicated PostgreSQL table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    local.up,
    local.demo,
    services.batch,
    services.migrate,
    services.scheduler,
    services.fetcher,
    services.writer,
    local.farm,
    services.health,
    parse,
    fire,
    status,
):
    app.command()(command)
for name, group in {"feeds": feeds, "dead": dead, "pending": pending}.items():
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command; an error that a person can act on is one sentence, not a traceback."""
    quieten_libraries()
    try:
        app()
    except (FeedmillError, OSError) as error:
        print_error(str(error))
        sys.exit(1)
    except UnicodeEncodeError:
        odd = next((argument for argument in sys.argv if any("\udc80" <= part <= "\udcff" for part in argument)), None)
        if odd is None:
            raise
        print_error(f"an argument is no text in UTF-8: {odd!r}")
        sys.exit(EXIT_USAGE)
    except (Interrupted, KeyboardInterrupt):
        print_error("stopped")
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
