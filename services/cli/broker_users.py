"""One user per service at the broker, with the rights that its work needs; they follow from the topology.

RabbitMQ requires *configure* to declare or delete, *write* to publish to an exchange and *read* to consume a queue. To
bind, it requires write on the queue and read on the exchange. Since 4.2.6 one of the three is required to look at a
queue's length; here that is write, which shows no message. A topic exchange has a right of its own by routing key.

No service may declare or delete a durable queue, nor publish to the default exchange, which leads to every queue.
docs/how-to/operate.md ("Users of the broker") says what an attacker can do with one service's user.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import httpx
from pydantic import AmqpDsn

from services.cli.settings import CliSettings
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.shards import FRONT as FRONT_SUFFIX
from shared.broker.topology import EXCHANGE, FETCHERS, NOWHERE, TRIALS, Stage, Topology
from shared.errors import BrokerUnavailable, ConfigurationError
from shared.settings import BrokerSettings, read_settings
from shared.wire.jobs import FetchFeed

NOTHING: Final = "^$"
SHARD: Final = r"fetcher\.[0-9]{2}"
FRONT: Final = rf"{SHARD}\{FRONT_SUFFIX}"
"""The queue of a shard's jobs that go ahead, and their routing key."""
TRIAL: Final = re.escape(TRIALS.queue)
"""The queue of what dry runs found, and its routing key."""
JOB: Final = re.escape(FetchFeed.KIND).replace(r"\.v", r"\.[0-9]{2}\.v")
LOCK: Final = rf"{SHARD}\.owner"
OWN_QUEUES: Final = (LOCK, r"fetcher\.alive\.[0-9a-f]{32}")
"""Exclusive queues of a fetcher: its locks, and what it listens on."""

TIMEOUT_SECONDS = 10.0
CONNECT_RETRIES = 6
"""Half a minute together: the API listens a moment after AMQP does."""


@dataclass(frozen=True)
class Rights:
    """What one user may, as RabbitMQ's regular expressions over names of queues and exchanges."""

    configure: str = NOTHING
    write: str = NOTHING
    read: str = NOTHING
    keys: Mapping[str, str] = field(default_factory=dict)
    """Routing keys that may be published, by exchange; of an exchange that is not named here, all."""
    tags: str = ""
    """What the management UI and API let the user do; nothing unless told."""


def service_rights(topology: Topology) -> dict[str, Rights]:
    """Return the rights of each user, by its name.

    `batch` is `feedmill batch` on its own; `api` is the HTTP API; `command` is for people's commands, `batch` and
    `dead` among them; `scaling` asks the management API for the length of queues.
    """
    fetcher, behind = topology.fetcher, topology.behind(topology.fetcher)
    assert fetcher.fast_delay is not None
    delays = [_of_any_delay(name) for name in (fetcher.fast_delay, fetcher.retry)]
    queues, keys = _names(stage.queue for stage in behind), _names(stage.input_key for stage in behind)
    services = "|".join(re.escape(stage.service) for stage in topology.stages)
    waiting = [*(_names(stage.dead for stage in topology.stages)), _of_any_delay(fetcher.retry)]
    back = [SHARD, FRONT, *queues, *(key for key in keys if key not in queues)]
    return {
        "scheduler": Rights(
            write=_any_of(EXCHANGE, re.escape(FETCHERS), SHARD),
            keys={EXCHANGE: _any_of(JOB)},
        ),
        "fetcher": Rights(
            configure=_any_of(*OWN_QUEUES),
            write=_any_of(EXCHANGE, re.escape(FETCHERS), *delays, *OWN_QUEUES, *queues),
            read=_any_of(SHARD, FRONT, re.escape(FETCHERS), *OWN_QUEUES),
            keys={EXCHANGE: _any_of(SHARD, FRONT, TRIAL, *keys, re.escape(fetcher.dead))},
        ),
        **{stage.service: _rights_behind(stage, topology) for stage in behind},
        "batch": Rights(
            configure=_any_of(LOCK),
            write=_any_of(EXCHANGE, *queues),
            read=_any_of(SHARD),
            keys={EXCHANGE: _any_of(*keys, re.escape(fetcher.dead))},
        ),
        # Looks at every queue, reads those of dead letters and of retries, and publishes back to where they failed.
        "api": Rights(
            write=_any_of(EXCHANGE, SHARD, FRONT, TRIAL, _of_any_delay(fetcher.fast_delay), *queues),
            read=_any_of(*waiting, *(_of_any_delay(stage.retry) for stage in behind)),
            keys={EXCHANGE: _any_of(*back, NOWHERE)},
        ),
        "command": Rights(
            configure=_any_of(LOCK),
            write=_any_of(EXCHANGE),
            read=_any_of(rf"({services})(\..+)?"),
            keys={EXCHANGE: _any_of(*back, re.escape(fetcher.dead), NOWHERE)},
        ),
        "scaling": Rights(tags="monitoring"),
    }


def _rights_behind(stage: Stage, topology: Topology) -> Rights:
    """Return the rights of a stage behind the fetcher.

    It may publish to every later stage, not only to the next one: while a stage is inserted, older processes still
    publish to the stage that was next before.
    """
    keys = _names(later.input_key for later in topology.behind(stage))
    last = [TRIAL] if stage.service == "writer" else []
    return Rights(
        write=_any_of(EXCHANGE, _of_any_delay(stage.retry)),
        read=_any_of(re.escape(stage.queue), *last),
        keys={EXCHANGE: _any_of(*keys, re.escape(stage.dead))},
    )


def _names(names: Iterable[str]) -> list[str]:
    return [re.escape(name) for name in names]


def _any_of(*patterns: str) -> str:
    return f"^({'|'.join(patterns)})$"


def _of_any_delay(queue: str) -> str:
    """Return the pattern of a delay queue's name: a service that is about to be replaced has another delay."""
    name, _, _ = re.fullmatch(r"([a-z.-]+(\.v\d+)?)\.([0-9.e+-]+s)", queue).groups()  # type: ignore[union-attr]
    return rf"{re.escape(name)}\.[0-9.e+-]+s"


class Management:
    """RabbitMQ's management API, as an administrator.

    Args:
        url: where it is, without credentials.
        amqp_url: of the same broker: the administrator, and the virtual host whose permissions are set.
    """

    def __init__(self, url: str, amqp_url: str) -> None:
        parts = AmqpDsn(amqp_url)
        self._url = url.rstrip("/")
        self._auth = (unquote(parts.username or "guest"), unquote(parts.password or "guest"))
        self._vhost = quote(unquote((parts.path or "/")[1:]) or "/", safe="")

    def put_user(self, name: str, password: str, rights: Rights) -> None:
        """Make the user, or give one that exists this password and these rights.

        Raises:
            BrokerUnavailable: the API is away.
            ConfigurationError: it refuses.
        """
        user = quote(name, safe="")
        permission = {"configure": rights.configure, "write": rights.write, "read": rights.read}
        # The routing keys first: of an exchange without any, the permission would be for all keys.
        self._put(f"users/{user}", {"password": password, "tags": rights.tags})
        for exchange, keys in rights.keys.items():
            keys_of = {"exchange": exchange, "write": keys, "read": NOTHING}
            self._put(f"topic-permissions/{self._vhost}/{user}", keys_of)
        self._put(f"permissions/{self._vhost}/{user}", permission)

    def _put(self, path: str, body: Mapping[str, str]) -> None:
        url = f"{self._url}/api/{path}"
        transport = httpx.HTTPTransport(retries=CONNECT_RETRIES)  # and no proxy, which would be for feeds
        try:
            with httpx.Client(transport=transport, timeout=TIMEOUT_SECONDS) as client:
                answer = client.put(url, json=dict(body), auth=self._auth)
        except httpx.HTTPError as error:
            raise BrokerUnavailable(f"RabbitMQ's management API: {url}: {error!r}") from error
        if answer.is_error:
            raise ConfigurationError(f"RabbitMQ's management API: {url}: {answer.status_code} {answer.text[:300]}")


def prepare_broker(amqp_url: str, settings: CliSettings) -> list[str]:
    """Declare the topology and make the users whose passwords the settings name; return their names.

    Raises:
        BrokerUnavailable: the broker is away.
        ConfigurationError: it refuses, or there is no such service.
    """
    if not settings.broker_users:
        return []
    broker = read_settings(BrokerSettings)
    topology = replace(broker.topology(), declared_on_connect=True)
    rights, passwords = service_rights(topology), dict(_read_passwords(Path(settings.broker_users)))
    unknown = sorted(passwords.keys() - rights.keys())
    if unknown:
        raise ConfigurationError(
            f"{settings.broker_users}: no user {', '.join(unknown)}; there are {', '.join(rights)}"
        )
    asyncio.run(_declare(RabbitMQ(amqp_url, name="feedmill migrate", max_message_bytes=1024), topology))
    management = Management(settings.management_url, amqp_url)
    for name, password in passwords.items():
        management.put_user(name, password, rights[name])
    return list(passwords)


async def _declare(broker: RabbitMQ, topology: Topology) -> None:
    async with broker.connect(topology):
        pass


def _read_passwords(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield names and passwords. Raises ConfigurationError."""
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
        for path in files:
            password = path.read_text(encoding="utf-8").strip()
            if not password:
                raise ConfigurationError(f"{path} is empty, and would be a user without a password")
            yield path.name, password
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"FEEDMILL_BROKER_USERS: {error}") from error
