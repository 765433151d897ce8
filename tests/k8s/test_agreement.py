"""Kubernetes, Compose and the code agree."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import typer.main
import yaml
from pydantic_settings import BaseSettings

from services.api.server import DRAIN_SECONDS as API_DRAIN_SECONDS
from services.api.settings import ApiSettings
from services.cli.__main__ import app
from services.cli.broker_users import service_rights
from services.cli.settings import CliSettings
from services.enricher.settings import EnricherSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.__main__ import CONNECTIONS as SCHEDULER_CONNECTIONS
from services.scheduler.settings import SchedulerSettings
from services.writer.__main__ import CONNECTIONS as WRITER_CONNECTIONS
from services.writer.settings import WriterSettings
from shared.broker.consumer import DRAIN_SECONDS
from shared.settings import SECRETS, BrokerSettings, FeedmillSettings, read_settings
from tests.k8s.manifests import ROOT, Object, Pod, environment, find, of_kind, pods, render, selects, services
from tests.k8s.policies import quantity, replicas_of

COMPOSE = ROOT / "docker-compose.yml"

READ_BY: dict[str, tuple[type[FeedmillSettings], ...]] = {
    "scheduler": (SchedulerSettings,),
    "fetcher": (FetcherSettings,),
    "enricher": (EnricherSettings,),
    "writer": (WriterSettings,),
    "api": (ApiSettings, SchedulerSettings, FetcherSettings, WriterSettings),
    "migrate": (CliSettings, BrokerSettings),
    "batch": (FetcherSettings, SchedulerSettings),
}
"""The settings that each command reads."""

EVERY_SETTING = {
    f"FEEDMILL_{name.upper()}" for classes in READ_BY.values() for cls in classes for name in cls.model_fields
}
GRACE_MARGIN_SECONDS = 5
"""The seconds that a grace period leaves beyond the drain, so that the process can end."""


def command_of(pod: Pod) -> str:
    (container,) = pod.spec["containers"]
    return str(container["args"][0])


def variables(pod: Pod, objects: tuple[Object, ...]) -> dict[str, str]:
    (container,) = pod.spec["containers"]
    return environment(container, objects)


def test_the_image_is_this_version(objects: tuple[Object, ...]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for pod in pods(objects):
        name = "feedmill-enricher" if command_of(pod) == "enricher" else "feedmill"
        assert {one["image"].rpartition("/")[2] for one in pod.containers} == {f"{name}:{version}"}
    registries = {one["image"].rpartition("/")[0] for pod in pods(objects) for one in pod.containers}
    assert len(registries) == 1


def test_each_pod_runs_a_command_of_ours(objects: tuple[Object, ...]) -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # a group
    for pod in pods(objects):
        (container,) = pod.spec["containers"]
        command = command_of(pod)
        assert pod.owner == f"feedmill-{command}"
        assert pod.labels["app.kubernetes.io/component"] == container["name"] == command
        assert "command" not in container  # the image's entry point is `feedmill`
        assert command in commands


def test_every_variable_is_a_setting(objects: tuple[Object, ...]) -> None:
    for pod in pods(objects):
        ours = {name for name in variables(pod, objects) if name.startswith("FEEDMILL_")}
        assert ours
        assert ours <= EVERY_SETTING, pod.owner


def settings_of(pod: Pod, objects: tuple[Object, ...], monkeypatch: pytest.MonkeyPatch) -> list[BaseSettings]:
    """Return the settings that the pod's process reads from its environment; raise if it can't."""
    for name in EVERY_SETTING:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables(pod, objects).items():
        monkeypatch.setenv(name, value)
    return [read_settings(cls) for cls in READ_BY[command_of(pod)]]


def test_services_can_read_their_settings(objects: tuple[Object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in pods(objects):
        for settings in settings_of(pod, objects, monkeypatch):
            for url in ("amqp_url", "database_url"):
                if getattr(settings, url, None) is not None:
                    assert f"FEEDMILL_{url.upper()}" in variables(pod, objects), pod.owner  # no default of a laptop's


def test_services_connect_to_servers_that_are_there(
    objects: tuple[Object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for pod in pods(objects):
        for settings in settings_of(pod, objects, monkeypatch):
            for name in ("amqp_url", "database_url"):
                url = getattr(settings, name, None)
                if url is not None:
                    host = url.hosts()[0]["host"] if name == "database_url" else url.host
                    assert host in services(objects), pod.owner


def test_each_service_is_a_user_of_its_own_at_the_broker(objects: tuple[Object, ...]) -> None:
    for pod in pods(objects):
        (container,) = pod.spec["containers"]
        names = {
            variable["valueFrom"]["secretKeyRef"]["name"]
            for variable in container["env"]
            if variable["name"].startswith("RABBITMQ_")
        }
        name = command_of(pod)
        assert names == {"feedmill-broker-default-user" if name == "migrate" else f"feedmill-broker-user-{name}"}


def test_migrations_make_the_users_that_services_are(objects: tuple[Object, ...]) -> None:
    (migrate,) = (pod for pod in pods(objects) if command_of(pod) == "migrate")
    (made,) = (volume["projected"]["sources"] for volume in migrate.spec["volumes"] if "projected" in volume)
    users = {item["path"] for source in made for item in source["secret"]["items"]}
    assert all(
        source["secret"]["name"] == f"feedmill-broker-user-{source['secret']['items'][0]['path']}" for source in made
    )
    assert users == service_rights(BrokerSettings().topology()).keys() - {"command"}
    mount = next(one for one in migrate.containers[0]["volumeMounts"] if one["name"] == "broker-users")
    assert variables(migrate, objects)["FEEDMILL_BROKER_USERS"] == mount["mountPath"]
    assert variables(migrate, objects)["FEEDMILL_DECLARE_TOPOLOGY"] == "false"


def test_only_migrations_go_past_the_pooler(objects: tuple[Object, ...]) -> None:
    for pod in pods(objects):
        url = variables(pod, objects).get("FEEDMILL_DATABASE_URL", "")
        if url:
            assert ("-pooler-" in url) == (command_of(pod) != "migrate")
            assert "sslmode=verify-ca&sslrootcert=/etc/feedmill/database/ca.crt" in url
            (container,) = pod.spec["containers"]
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
            assert volumes[mounts["/etc/feedmill/database"]]["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]


def test_plans_are_not_kept_behind_a_pooler_in_transaction_mode(objects: tuple[Object, ...]) -> None:
    pooler = find(objects, "Pooler", "feedmill-database-pooler-rw")["spec"]["pgbouncer"]
    assert pooler["poolMode"] == "transaction"
    for pod in pods(objects):
        assert variables(pod, objects)["FEEDMILL_PREPARED_STATEMENTS"] == "false"


def test_the_port_is_the_one_that_is_probed(objects: tuple[Object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in pods(objects):
        for settings in settings_of(pod, objects, monkeypatch) if pod.kind == "Deployment" else ():
            (container,) = pod.spec["containers"]
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            assert ports.pop("http") == settings.metrics_port  # type: ignore[attr-defined]
            assert ports == ({"api": ApiSettings().api_port} if command_of(pod) == "api" else {})
            assert settings.metrics_host == "0.0.0.0"  # type: ignore[attr-defined]


def drain_seconds(command: str) -> float:
    longest = FetcherSettings().longest_fetch_seconds() if command in {"fetcher", "batch"} else 0
    return longest + DRAIN_SECONDS


def test_grace_periods_fit_the_drain(objects: tuple[Object, ...]) -> None:
    for pod in pods(objects):
        if command_of(pod) != "migrate":
            grace = pod.spec["terminationGracePeriodSeconds"]
            assert drain_seconds(command_of(pod)) + GRACE_MARGIN_SECONDS <= grace <= drain_seconds(command_of(pod)) + 30


def test_the_api_takes_requests_until_nobody_leads_them_to_it_and_then_ends_in_time() -> None:
    (pod,) = (pod for pod in pods(render("prod/queue-fetcher")) if command_of(pod) == "api")
    (container,) = pod.containers
    still = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert still >= container["readinessProbe"]["periodSeconds"]
    grace = pod.spec["terminationGracePeriodSeconds"]
    assert still + API_DRAIN_SECONDS + GRACE_MARGIN_SECONDS <= grace


def test_requests_find_the_api(objects: tuple[Object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    (pod,) = (pod for pod in pods(objects) if command_of(pod) == "api")
    (container,) = pod.containers
    settings = next(one for one in settings_of(pod, objects, monkeypatch) if isinstance(one, ApiSettings))
    settings.require_loopback_if_open()
    service = find(objects, "Service", "feedmill-api")
    assert selects(service["spec"]["selector"], pod.labels)
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {one["name"] for one in container["ports"]}
    assert service["metadata"]["name"] in settings.host_set()
    for ingress in of_kind(objects, "Ingress"):
        ((rule,), (tls,)) = ingress["spec"]["rules"], ingress["spec"]["tls"]
        assert {rule["host"]} == set(tls["hosts"])
        assert rule["host"] in settings.host_set()
        (path,) = rule["http"]["paths"]
        assert path["path"] == "/"
        assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
        namespace = find(objects, "Namespace", ingress["metadata"]["namespace"])["metadata"]["name"]
        assert f"feedmill-api.{namespace}.svc" in settings.host_set()


def test_a_batch_ends_before_it_is_ended() -> None:
    batch = find(render("prod/batch-fetcher"), "CronJob", "feedmill-batch")["spec"]["jobTemplate"]["spec"]
    (container,) = batch["template"]["spec"]["containers"]
    most = int(container["args"][container["args"].index("--most-seconds") + 1])
    assert most + drain_seconds("batch") <= batch["activeDeadlineSeconds"]


def scaled(objects: tuple[Object, ...]) -> list[Object]:
    found = of_kind(objects, "ScaledObject")
    if not found:
        pytest.skip("KEDA is not in this environment")
    return found


def test_scaling_looks_at_the_queues_that_are_read(queue_objects: tuple[Object, ...]) -> None:
    topology = BrokerSettings().topology()
    for one in scaled(queue_objects):
        (trigger,) = one["spec"]["triggers"]
        name, regex = trigger["metadata"]["queueName"], trigger["metadata"].get("useRegex") == "true"
        matched = {
            queue.name for queue in topology.queues if (re.search(name, queue.name) if regex else queue.name == name)
        }
        service = one["metadata"]["name"].removeprefix("feedmill-")
        assert matched == set(topology.stage(service).queues)


def test_there_are_no_more_fetchers_than_shards(queue_objects: tuple[Object, ...]) -> None:
    fetcher = next(one for one in scaled(queue_objects) if one["metadata"]["name"] == "feedmill-fetcher")
    assert fetcher["spec"]["maxReplicaCount"] <= BrokerSettings().fetcher_shards


def test_all_fetchers_and_writers_work_before_a_valve_shuts() -> None:
    """Each threshold times the most replicas is reached within the high-water mark of the queue's publisher."""
    settings, objects = SchedulerSettings(), render("prod/queue-fetcher")
    for name, high_water in (
        ("feedmill-fetcher", settings.fetcher_high_water),
        ("feedmill-enricher", FetcherSettings().writer_high_water),
        ("feedmill-writer", FetcherSettings().writer_high_water),
    ):
        spec = find(objects, "ScaledObject", name)["spec"]
        assert (spec["maxReplicaCount"] - 1) * int(spec["triggers"][0]["metadata"]["value"]) < high_water


def test_the_fetchers_threshold_is_what_one_takes() -> None:
    spec = find(render("prod/queue-fetcher"), "ScaledObject", "feedmill-fetcher")["spec"]
    assert int(spec["triggers"][0]["metadata"]["value"]) == FetcherSettings().fetcher_prefetch


def broker_configuration(objects: tuple[Object, ...]) -> dict[str, str]:
    text = find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]["rabbitmq"]["additionalConfig"]
    return {key: value for key, _, value in (line.partition(" = ") for line in text.splitlines())}


def test_the_broker_takes_our_largest_message(objects: tuple[Object, ...]) -> None:
    assert int(broker_configuration(objects)["max_message_size"]) > BrokerSettings().max_message_bytes


def test_the_log_of_the_brokers_queues_fits_its_memory(objects: tuple[Object, ...]) -> None:
    """At times there are three: one is written, one moves to the queues' own files, one is read."""
    memory = quantity(find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]["resources"]["limits"]["memory"])
    configuration = broker_configuration(objects)
    before_it_blocks = memory * 0.8 * float(configuration["vm_memory_high_watermark.relative"])
    assert 3 * int(configuration["quorum_queue.wal_max_size_bytes"]) < before_it_blocks


def test_full_queues_refuse_and_do_not_drop(objects: tuple[Object, ...]) -> None:
    """The broker's limits cover all queues that refuse messages when full, and all of them fit on its disk."""
    configuration, total = broker_configuration(objects), 0
    patterns = {
        configuration[f"default_policies.operator.{name}.queue_pattern"]: int(
            configuration[f"default_policies.operator.{name}.max_length_bytes"]
        )
        for name in ("jobs", "results")
    }
    for queue in BrokerSettings().topology().queues:
        limits = [limit for pattern, limit in patterns.items() if re.search(pattern, queue.name)]
        if "x-max-length-bytes" in queue.arguments:
            assert limits == [], "it has a limit of its own"
            total += int(queue.arguments["x-max-length-bytes"])
            continue
        if queue.name.endswith(".dead"):
            assert limits == [], "the oldest dead letters would be dropped"
            continue
        assert len(limits) == 1, queue.name
        total += limits[0]
        assert queue.arguments["x-overflow"] == "reject-publish", queue.name
    storage = find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]["persistence"]["storage"]
    assert total + 2e9 < quantity(storage) * 0.8


def test_connections_fit(objects: tuple[Object, ...]) -> None:
    pooler = find(objects, "Pooler", "feedmill-database-pooler-rw")["spec"]
    cluster = find(objects, "Cluster", "feedmill-database")["spec"]
    most = {
        one["spec"]["scaleTargetRef"]["name"]: one["spec"]["maxReplicaCount"]
        for one in of_kind(objects, "ScaledObject")
    }
    clients = 0
    most |= {
        one["spec"]["scaleTargetRef"]["name"]: one["spec"]["maxReplicas"]
        for one in of_kind(objects, "HorizontalPodAutoscaler")
    }
    for name, each in (
        ("feedmill-scheduler", SCHEDULER_CONNECTIONS),
        ("feedmill-writer", WRITER_CONNECTIONS),
        ("feedmill-api", ApiSettings().api_connections + 1),
    ):
        for one in of_kind(objects, "Deployment"):
            if one["metadata"]["name"] == name:
                clients += (most.get(name, replicas_of(one, objects)) + 1) * each  # and one more during a rollout
    parameters = pooler["pgbouncer"]["parameters"]
    assert clients <= int(parameters["max_client_conn"]) * pooler["instances"]
    servers = int(parameters["default_pool_size"]) * pooler["instances"]
    assert servers + 20 <= int(cluster["postgresql"]["parameters"]["max_connections"])


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    if not COMPOSE.exists():
        pytest.skip("docker-compose.yml is not there yet")
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return services


SERVICES = ("migrate", "scheduler", "fetcher", "enricher", "writer", "api")


@pytest.mark.parametrize("name", SERVICES)
def test_compose_runs_the_same_commands(compose: dict[str, Any], name: str) -> None:
    (pod,) = (pod for pod in pods(render("prod/queue-fetcher")) if command_of(pod) == name)
    assert compose[name]["command"] == pod.spec["containers"][0]["args"]


@pytest.mark.parametrize("name", SERVICES)
def test_compose_and_kubernetes_set_what_the_service_reads(compose: dict[str, Any], name: str) -> None:
    """The same servers and the same port; Compose hands on every other setting besides."""
    objects = render("prod/queue-fetcher")
    (pod,) = (pod for pod in pods(objects) if command_of(pod) == name)
    read = {f"FEEDMILL_{field.upper()}" for cls in READ_BY[name] for field in cls.model_fields}
    ours = {key for key in variables(pod, objects) if key in read}
    in_files = {"FEEDMILL_AMQP_URL", "FEEDMILL_DATABASE_URL"} & read
    given = set(compose[name]["environment"]) - {SECRETS} | in_files
    assert ours <= given
    assert given - {"FEEDMILL_FIRE_SECONDS"} <= read
    for key in ("FEEDMILL_METRICS_HOST", "FEEDMILL_METRICS_PORT"):
        if key in read:
            assert compose[name]["environment"][key] == variables(pod, objects)[key]


@pytest.mark.parametrize("name", ["scheduler", "fetcher", "enricher", "writer", "api"])
def test_compose_grants_the_same_grace_period(compose: dict[str, Any], name: str) -> None:
    (pod,) = (pod for pod in pods(render("prod/queue-fetcher")) if command_of(pod) == name)
    assert compose[name]["stop_grace_period"] == f"{pod.spec['terminationGracePeriodSeconds']}s"


def test_compose_and_kubernetes_have_the_same_major_versions_of_servers(compose: dict[str, Any]) -> None:
    objects = render("prod/queue-fetcher")
    broker = find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]["image"]
    assert (
        compose["rabbitmq"]["image"].partition(":")[2].partition("-")[0] == broker.partition(":")[2].partition(".")[0]
    )
    major = find(objects, "Cluster", "feedmill-database")["spec"]["imageCatalogRef"]["major"]
    assert compose["postgres"]["image"].partition("@")[0] == f"postgres:{major}"
