"""RabbitMQ and PostgreSQL servers of Feedmill's own, for `make run`, `feedmill up` and the tests.

    with private_servers(Path(".feedmill/servers")) as servers:
        run(servers.amqp_url, servers.database_url)

They come from the system's packages, listen on free ports of 127.0.0.1, and keep everything in that directory: the
machine's own brokers and databases, their data and their configuration are never touched.
"""

from local.servers.postgres import PrivatePostgres
from local.servers.private import (
    Servers,
    delete_servers,
    is_held,
    is_installed,
    keep_running,
    private_database,
    private_servers,
    throw_away_servers,
)
from local.servers.rabbitmq import PrivateRabbitMQ

__all__ = [
    "PrivatePostgres",
    "PrivateRabbitMQ",
    "Servers",
    "delete_servers",
    "is_held",
    "is_installed",
    "keep_running",
    "private_database",
    "private_servers",
    "throw_away_servers",
]
