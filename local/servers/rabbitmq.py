"""A RabbitMQ node of our own, from the system's package, beside whatever the machine runs itself.

It shares nothing with the machine's node: no port mapper (epmd), cookie, configuration file or data. Everything listens
on the loopback address. As root we run it as the package's user, if it exists (`local/servers/cluster.py`).
"""

from __future__ import annotations

import logging
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import quote

import httpx

from local.servers.cluster import DATA_NAME, find_account, give, place_cluster
from local.servers.identity import RabbitMQIdentity, start_on_free_ports, write_private
from local.servers.processes import Command, ServerProcess, end_leftover
from shared.errors import BrokerUnavailable, ConfigurationError

logger = logging.getLogger(__name__)

DEFAULT_VHOST = "feedmill"
USER = "rabbitmq"
"""The account of the node if we are root, and it exists."""
READY_SECONDS = 120.0  # 6 s on an idle machine; a loaded one with two cores has been seen to take ten times that
STOP_SECONDS = 30.0
EPMD_READY_SECONDS = 20.0
HTTP_TIMEOUT_SECONDS = 10.0
# The package's own scripts; those in /usr/sbin would switch to the user rabbitmq.
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = Path("/usr/bin/epmd")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # the Erlang that the package was made for, not one in /usr/local
PLUGINS = "[rabbitmq_consistent_hash_exchange,rabbitmq_management,rabbitmq_prometheus].\n"
# The management API's queue totals come from samples that by default are 5 s apart, and a quorum queue reports to
# them every 5 s: here 1 s and 0.5 s. (How long samples are kept, and the coarser steps, are RabbitMQ's defaults.)
ADVANCED_CONFIG = """\
[{rabbit, [{quorum_tick_interval, 500}]},
 {rabbitmq_management_agent, [{sample_retention_policies,
   [{global, [{605, 1}, {3660, 60}, {29400, 600}, {86400, 1800}]},
    {basic, [{605, 1}, {3600, 60}]},
    {detailed, [{605, 1}]}]}]}].
"""
# The largest message is what RabbitMQ 4 takes unless told otherwise; 3.10 would take eight times as much.
CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{amqp_port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {management_port}
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = {prometheus_port}
default_user = {user}
default_pass = {password}
default_vhost = {vhost}
default_user_tags.administrator = true
collect_statistics_interval = 500
disk_free_limit.absolute = 50MB
max_message_size = 16777216
vm_memory_high_watermark.absolute = 1GB
"""


class PrivateRabbitMQ:
    """The node whose data, credentials and ports live in `directory`; one object at a time may use it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "rabbitmq.log"
        self._data = directory
        """The node's own folder; known with its identity."""
        self._identity: RabbitMQIdentity | None = None
        self._epmd: ServerProcess | None = None
        self._node: ServerProcess | None = None

    @property
    def identity(self) -> RabbitMQIdentity:
        """The node's names, credentials and ports; known from the first start on."""
        if self._identity is None:
            raise RuntimeError("this RabbitMQ was never started: it has no ports yet")
        return self._identity

    @property
    def management_url(self) -> str:
        """The management UI and API."""
        return f"http://127.0.0.1:{self.identity.management_port}"

    def amqp_url(self, vhost: str = DEFAULT_VHOST) -> str:
        """Return the AMQP URL of a virtual host, credentials included."""
        known = self.identity
        return f"amqp://{known.user}:{known.password}@127.0.0.1:{known.amqp_port}/{quote(vhost, safe='')}"

    def start(self) -> None:
        """Start the node and return when AMQP and the management API answer; does nothing if it runs.

        The first start of this object ends the servers of an earlier run and chooses the ports; later ones keep them.
        Raises ConfigurationError, with the log's last lines, if it can't be started.
        """
        if self.is_running():
            return
        if not SERVER.exists() or not EPMD.exists():
            raise ConfigurationError("RabbitMQ is not installed (Debian package rabbitmq-server): run `make setup`")
        if self._identity is None:
            start_on_free_ports(self._take_over, self._start)
        else:
            self._start()

    def _start(self) -> None:
        try:
            self._start_epmd()
            self._node = ServerProcess(self._node_command())
            self._node.wait_until_ready(self._missing, READY_SECONDS)
        except BaseException:
            self.kill()
            raise

    def stop(self, fast: bool = False) -> None:
        """Stop the node and its epmd; `fast` kills them, which loses nothing that was confirmed to a publisher."""
        if fast:
            self.kill()
            return
        if self._node is not None and self._node.is_running():
            self._remove_statistics_handler()
            self._node.end(signal.SIGTERM, STOP_SECONDS)
        self.kill()  # epmd keeps nothing, and a node that ended by itself leaves only its record

    def kill(self) -> None:
        """End the node and its epmd with SIGKILL."""
        for process in (self._node, self._epmd):
            if process is not None:
                process.end(signal.SIGKILL, 0)

    def is_running(self) -> bool:
        """Return whether the node's process runs."""
        return self._node is not None and self._node.is_running()

    def process_ids(self) -> list[int]:
        """Return the pids of the servers that run: the node's and its epmd's."""
        return [p.id.pid for p in (self._node, self._epmd) if p is not None and p.is_running()]

    def create_vhost(self, name: str) -> None:
        """Create a virtual host and give our user all rights on it; one that exists keeps its queues.

        Raises BrokerUnavailable if the management API is away or refuses.
        """
        vhost = quote(name, safe="")
        self._request("PUT", f"/api/vhosts/{vhost}")
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._request("PUT", f"/api/permissions/{vhost}/{self.identity.user}", everything)

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with its queues; its connections are closed. None of that name is fine too.

        Raises BrokerUnavailable if the management API is away or refuses.
        """
        self._request("DELETE", f"/api/vhosts/{quote(name, safe='')}", allowed={404})

    def end_leftovers(self) -> None:
        """End the processes that a killed run left, if any."""
        end_leftover(self._record("node"), signal.SIGTERM)
        end_leftover(self._record("epmd"), signal.SIGTERM)

    def _take_over(self) -> RabbitMQIdentity:
        self.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.directory.chmod(0o711)  # whatever the umask: the node's account passes through
        self.end_leftovers()
        self._identity = known = RabbitMQIdentity.take(self.directory)
        self._data = data = place_cluster(self.directory, USER) / DATA_NAME
        account = find_account(data, USER)
        for folder in (data, data / "home", data / "log"):
            folder.mkdir(mode=0o700, exist_ok=True)
        former = self.directory / "mnesia"  # where it stood when the node still ran as root
        if former.is_dir():
            shutil.move(former, data / "mnesia")
        values = known.model_dump()
        write_private(data / "rabbitmq.conf", CONFIG.format(vhost=DEFAULT_VHOST, **values))
        write_private(data / "advanced.config", ADVANCED_CONFIG)
        write_private(data / "enabled_plugins", PLUGINS)
        write_private(data / "home" / ".erlang.cookie", known.cookie, mode=0o400)
        give(data, account)
        return known

    def _start_epmd(self) -> None:
        if self._epmd is not None and self._epmd.is_running():
            return
        port = self.identity.epmd_port
        self._epmd = ServerProcess(
            Command(
                name="epmd",
                argv=[str(EPMD), "-port", str(port), "-address", "127.0.0.1"],
                environment=self._erlang_environment(),
                log=self.directory / "epmd.log",
                record=self._record("epmd"),
                death_signal="TERM",
                account=find_account(self._data, USER),
            )
        )
        self._epmd.wait_until_ready(lambda: _missing_listener(port), EPMD_READY_SECONDS)

    def _record(self, name: str) -> Path:
        return self.directory / f"{name}.process.json"

    def _erlang_environment(self) -> dict[str, str]:
        return {
            "PATH": SYSTEM_PATH,
            "HOME": str(self._data / "home"),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self.identity.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # The port mapper is ours: one that a node starts itself outlives everything. Idle schedulers don't spin.
            "ERL_AFLAGS": "-start_epmd false +sbwt none +sbwtdcpu none +sbwtdio none",
        }

    def _node_command(self) -> Command:
        d, known = self._data, self.identity
        environment = self._erlang_environment() | {
            "RABBITMQ_NODENAME": known.node,
            "RABBITMQ_DIST_PORT": str(known.distribution_port),
            "RABBITMQ_MNESIA_BASE": str(d / "mnesia"),
            "RABBITMQ_LOG_BASE": str(d / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG": "-color",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(d / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(d / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(d / "advanced.config"),
            # Both are absent on purpose: by default the machine's own in /etc/rabbitmq would be read.
            "RABBITMQ_CONFIG_FILES": str(d / "no-conf.d"),
            "RABBITMQ_CONF_ENV_FILE": str(d / "no-env.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # With input "allowed" the script becomes the Erlang machine instead of waiting for it as a shell.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_START_ARGS": "-noinput",
            "ERL_CRASH_DUMP_SECONDS": "0",
        }
        account = find_account(d, USER)
        return Command("RabbitMQ", [str(SERVER)], environment, self.log, self._record("node"), "TERM", account=account)

    def _missing(self) -> str | None:
        port = self.identity.amqp_port
        if not _answers_amqp(port):
            return f"AMQP on port {port} does not answer"
        try:
            self._request("GET", "/api/whoami")
        except BrokerUnavailable as error:
            return str(error)
        return None

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, str] | None = None,
        allowed: frozenset[int] | set[int] = frozenset(),
    ) -> None:
        known = self.identity
        url = self.management_url + path
        try:
            # No proxy of the user's for the loopback address, and no certificates: reading them outlasts the request.
            with httpx.Client(trust_env=False, verify=False, timeout=HTTP_TIMEOUT_SECONDS) as client:  # noqa: S501
                answer = client.request(method, url, json=body, auth=(known.user, known.password))
        except httpx.HTTPError as error:
            raise BrokerUnavailable(f"RabbitMQ's management API: {method} {url}: {error!r}") from error
        if answer.is_error and answer.status_code not in allowed:
            said = answer.text[:300]
            raise BrokerUnavailable(f"RabbitMQ's management API: {method} {url}: {answer.status_code} {said}")

    def _remove_statistics_handler(self) -> None:
        """Spare the stop 5 s: this handler's own end asks the application controller, which waits for it.

        (rabbit_mgmt_db_handler calls application:set_env while the controller stops the application; only the
        call's time-out ends that.) Taken away beforehand it ends at once. If that fails, the stop is merely slow.
        """
        tool = next(Path("/usr/lib/erlang").glob("erts-*/bin/erl_call"), None)
        if tool is None:
            return
        call = "gen_event delete_handler [rabbit_event,rabbit_mgmt_db_handler,stop]"
        argv = [str(tool), "-n", self.identity.node, "-a", call]
        try:
            subprocess.run(argv, env=self._erlang_environment(), capture_output=True, check=True, timeout=5)
        except (OSError, subprocess.SubprocessError) as error:
            logger.debug("RabbitMQ will take 5 s more to stop: %r", error)


def _missing_listener(port: int) -> str | None:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as error:
        return f"port {port}: {error}"
    return None


def _answers_amqp(port: int) -> bool:
    """Return whether the port answers AMQP 0-9-1's protocol header with a method frame."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return connection.recv(1) == b"\x01"
    except OSError:
        return False
