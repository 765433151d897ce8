"""The commands that run a pipeline on one machine: `up`, `demo`, and `farm` (the demo's sites for other machines)."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Annotated

import typer

from local.terminal import Interrupted, Terminal, interrupt_on_sigterm, run_interruptible
from services.cli.options import AsJson, span
from services.cli.output import console
from shared.observability.display import ascii_json


def up(
    fetchers: Annotated[int, typer.Option(min=1, help="Fetcher processes.")] = 1,
    writers: Annotated[int, typer.Option(min=1, help="Writer processes.")] = 1,
    enrichers: Annotated[
        int | None,
        typer.Option(
            min=0, help="Enricher processes; 0: articles come without labels. By default 1, if not switched off."
        ),
    ] = None,
    api: Annotated[bool, typer.Option(help="Run the HTTP API, open to this machine without a token.")] = True,
    api_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Its port; 0 takes a free one. By default 8080, or one that is free."),
    ] = None,
) -> None:
    """Run everything in this terminal: servers (private ones unless given), migrations, all services.

    Servers are given by FEEDMILL_AMQP_URL and FEEDMILL_DATABASE_URL. Private ones keep their data in
    .feedmill/up. Ctrl-C stops everything. With FEEDMILL_LOG_FORMAT=json each line is JSON, with the name of its
    process as `instance`. With FEEDMILL_METRICS_PORT the processes take that port and the next ones.
    """
    from services.cli.commands.up import up as run
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    interrupt_on_sigterm()
    with contextlib.suppress(Interrupted, KeyboardInterrupt):  # the usual way to end it
        settings, numbers = read_settings(CliSettings), {"fetchers": fetchers, "writers": writers}
        run(settings, **numbers, enrichers=enrichers, api=api, api_port=api_port)


def demo(as_json: AsJson = False) -> None:
    """Show the main job on a farm of good and bad feeds on loopback, and count every article.

    Exit code 0 only if every expected article is in the table exactly once.
    """
    from local.demo import report as demo_report
    from local.demo.demo import Demo
    from local.demo.sandbox import open_sandbox
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    interrupt_on_sigterm()
    shown = Terminal(stderr=True) if as_json else console
    shown.print("starting the servers and the feed farm ...")
    with open_sandbox(read_settings(CliSettings)) as sandbox:
        result = run_interruptible(demo_report.run_with_progress(Demo(sandbox), shown))
    demo_report.print_summary(result, shown, sandbox.logs)
    if as_json:
        print(ascii_json(dataclasses.asdict(result)))
    elif result.perfect:
        console.print(demo_report.NEXT_STEPS, soft_wrap=True)
    raise typer.Exit(0 if result.perfect else 1)


def farm(
    port: Annotated[int, typer.Option(min=1, max=65534, help="Where the sites are served.")] = 8080,
    address: Annotated[str, typer.Option(help="The address that the names site-2.farm, site-3.farm, … lead to.")] = (
        "127.0.0.1"
    ),
    waves: Annotated[int, typer.Option(min=0, help="How often new articles appear by themselves.")] = 2,
    wave_seconds: Annotated[
        float, typer.Option(parser=span(0.1), metavar="SPAN", help="Time between two waves.")
    ] = 20.0,
    interval: Annotated[float, typer.Option(parser=span(1), metavar="SPAN", help="Time between two polls.")] = 15.0,
) -> None:
    """Play the demo's sites for fetchers elsewhere: registers the feeds, publishes, counts what arrives.

    Ready (`feedmill health`) while every article is there exactly once. SIGUSR1 lets new articles appear.
    """
    from local.farm.service import FarmService, Plan
    from local.settings import FarmSettings
    from shared.service import run_service

    plan = Plan(address, port, waves, wave_seconds, interval)
    run_service("farm", FarmSettings, FarmService(plan).serve)
