"""Opens the API for a command: the one at FEEDMILL_API_URL, or one within the command.

The imports stand within the functions: every command imports this module, and `feedmill --help` imports every command.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from shared.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx

    from services.api.settings import ApiSettings
    from services.cli.calls.api import Api
    from services.cli.settings import CliSettings


@contextmanager
def open_api(*, database: bool = True, create: bool = False) -> Iterator[Api]:
    """Yield the API at FEEDMILL_API_URL; without one, an API in this process, on the servers that commands find.

    Args:
        database: whether the calls need the database; without one that is given or runs, a private one is started.
        create: create a private database if there is none yet.
    """
    from services.cli.calls.address import open_client
    from services.cli.calls.api import Api
    from services.cli.calls.loop import open_loop
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    settings = read_settings(CliSettings)
    with ExitStack() as stack:
        loop = stack.enter_context(open_loop())
        if settings.api_url:
            client = open_client(settings)
        else:
            opened = AsyncExitStack()
            own = _own_settings(stack, settings, database=database, create=create)
            stack.callback(lambda: loop.end(opened.aclose()))
            client = loop.run(_within(opened, *own))
        api = Api(loop, client)
        stack.callback(api.close)
        yield api


def _own_settings(
    stack: ExitStack, settings: CliSettings, *, database: bool, create: bool
) -> tuple[ApiSettings, str | None]:
    """Return the settings of an API in this process, and why it has no broker, if it has none.

    A database that was started for it ends with `stack`.
    """
    from pydantic import PostgresDsn

    from local.addresses import find_broker, open_database
    from services.api.settings import ApiSettings
    from shared.settings import read_settings

    changes: dict[str, Any] = {}
    if database:
        changes["database_url"] = PostgresDsn(stack.enter_context(open_database(settings, create=create)))
    no_broker = None
    try:
        changes["amqp_url"] = find_broker(settings)
    except ConfigurationError as error:  # most calls need none
        no_broker = str(error)
    return read_settings(ApiSettings).model_copy(update=changes), no_broker


async def _within(stack: AsyncExitStack, settings: ApiSettings, no_broker: str | None) -> httpx.AsyncClient:
    import httpx

    from services.admin.actor import Actor, Scope
    from services.admin.health.looks import end_searches
    from services.api.app import make_app_of_command
    from services.api.resources import Resources, open_database
    from services.cli.calls.within import WithinProcess

    database = await stack.enter_async_context(open_database(settings).open())
    stack.push_async_callback(end_searches)
    actor = Actor(f"command {_user()}", frozenset({Scope.ADMIN}))

    async def authenticate(_request: object) -> Actor:
        return actor

    resources = Resources(settings, database, no_broker=no_broker)
    stack.callback(resources.arrivals.close)
    app = make_app_of_command(resources, authenticate)
    return httpx.AsyncClient(transport=WithinProcess(app), base_url="http://feedmill", timeout=None)  # noqa: S113


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"user {os.getuid()}"
