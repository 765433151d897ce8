"""The command `feedmill doctor`: what keeps Feedmill from working here, and what to do about it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from services.admin.doctor.findings import EXIT_CODES, Finding, Severity, error, warning, well, worst_of
from services.cli.calls.opening import open_api
from services.cli.options import AsJson
from services.cli.output import console
from shared.errors import ConfigurationError, FeedmillError, Unavailable
from shared.observability.display import ascii_json, safe_to_show

if TYPE_CHECKING:
    from local.addresses import Addresses
    from services.cli.calls.api import Api
    from services.cli.settings import CliSettings
    from shared.broker.topology import Topology

MARKS = {Severity.OK: ("ok", "green"), Severity.WARNING: ("warning", "yellow"), Severity.ERROR: ("error", "red")}

Probe = Annotated[str | None, typer.Option(metavar="URL", help="Fetch this feed once, too, as a fetcher would.")]


def doctor(probe: Probe = None, as_json: AsJson = False) -> None:
    """Look for what is wrong: settings, servers, versions, queues, migrations, clocks, disk, names. Changes nothing.

    With FEEDMILL_API_URL it looks at the API instead of the servers. Exit code 0: all is well; 3: there are warnings;
    1: there are errors.
    """
    found = list(_look(probe))
    if as_json:
        print(ascii_json([asdict(finding) for finding in found]))
    else:
        for finding in found:
            _show(finding)
    raise typer.Exit(EXIT_CODES[worst_of(found)])


def _show(finding: Finding) -> None:
    mark, style = MARKS[finding.severity]
    console.print(f"{mark:<9}", style=style, end="", highlight=False)
    console.print(
        f"{finding.check}: {safe_to_show(finding.found, None)}", soft_wrap=True, highlight=False, markup=False
    )
    if finding.advice:
        advice = f"{'':<9}→ {safe_to_show(finding.advice, None)}"
        console.print(advice, soft_wrap=True, highlight=False, markup=False)


def _look(probe: str | None) -> Iterator[Finding]:
    from services.admin.doctor import machine
    from services.admin.doctor.settings import check_parts, check_settings, find_unreadable
    from services.api.settings import ApiSettings
    from services.cli.settings import CliSettings
    from services.enricher.settings import EnricherSettings
    from services.fetcher.settings import FetcherSettings
    from services.scheduler.settings import SchedulerSettings
    from services.writer.settings import WriterSettings
    from shared.settings import read_settings

    classes = (SchedulerSettings, FetcherSettings, EnricherSettings, WriterSettings, ApiSettings, CliSettings)
    yield from check_settings(os.environ, classes)
    if find_unreadable(classes):
        return  # nobody knows which servers are meant
    settings = read_settings(CliSettings)
    yield from machine.check_machine(settings.home)
    if settings.api_url:
        yield from _from_afar(settings.api_url)
    else:
        yield from check_parts(read_settings(EnricherSettings), is_here=settings.amqp_url is None)
        yield machine.check_open_files(read_settings(FetcherSettings))
        yield from _servers(settings)
    if probe is not None:
        yield machine.check_probe(probe)


def _servers(settings: CliSettings) -> Iterator[Finding]:
    from local.addresses import find
    from shared.settings import BrokerSettings, read_settings

    try:
        there = find(settings)
    except ConfigurationError as nowhere:
        yield error("servers", str(nowhere), "start `feedmill up`, or name the servers")
        return
    found = asyncio.run(_ask_servers(there, settings, read_settings(BrokerSettings).topology()))
    yield from found
    if worst_of(found) is not Severity.ERROR:
        with open_api() as api:
            yield _pipeline(api)


async def _ask_servers(there: Addresses, settings: CliSettings, topology: Topology) -> list[Finding]:
    from services.admin.doctor.broker import check_broker, check_management
    from services.admin.doctor.database import check_database

    async def collect(findings: AsyncIterator[Finding]) -> list[Finding]:
        return [finding async for finding in findings]

    management_url = there.management_url or settings.management_url
    parts = await asyncio.gather(
        collect(check_database(there.database_url)),
        collect(check_broker(there.amqp_url, topology)),
        collect(check_management(management_url, there.amqp_url)),
    )
    return [finding for part in parts for finding in part]


def _from_afar(url: str) -> Iterator[Finding]:
    from services.cli.calls.failures import UnknownAnswer
    from shared.build import read_version

    with open_api(database=False) as api:
        try:
            said = api.call("GET", "/api/openapi.json").json()["info"]["version"]
        except Unavailable as away:
            yield error("API", str(away), "`feedmill api` runs it; FEEDMILL_API_URL says where it is")
            return
        except UnknownAnswer as stranger:
            yield error("API", str(stranger), "correct FEEDMILL_API_URL: something else answers there")
            return
        except (ConfigurationError, ValueError, KeyError, TypeError) as refused:
            said = None
            yield warning("API", f"{url} does not describe itself: {refused}", "look at FEEDMILL_API_URL and the token")
        if said is not None:
            own = read_version()
            yield (
                well("API", f"{url}, version {said}")
                if said == own
                else warning("API", f"{url} is version {said}, this command {own}", "bring both to one version")
            )
        yield _pipeline(api)


def _pipeline(api: Api) -> Finding:
    """Return the verdict on the pipeline; from afar, it tells whether the token is good, too."""
    from services.api.models.health import PipelineHealth

    try:
        answer = api.call("GET", "/api/health/pipeline", accept={HTTPStatus.SERVICE_UNAVAILABLE})
        found = PipelineHealth.model_validate_json(answer.content)
    except FeedmillError as refused:
        return error("API", str(refused), "look at FEEDMILL_API_URL and FEEDMILL_API_TOKEN (it needs the scope `read`)")
    except ValueError:
        return error("API", "what answers is no API of Feedmill", "correct FEEDMILL_API_URL")
    if found.status == "healthy":
        return well("pipeline", "healthy")
    return warning("pipeline", f"{found.status}: {'; '.join(found.reasons)}", "`feedmill status --health` tells more")
