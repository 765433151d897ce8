"""The NetworkPolicies allow the necessary connections, and no others."""

from __future__ import annotations

import ipaddress

import pytest

from services.fetcher.http.address_guard import Blocked, check_address
from tests.k8s.manifests import Object, all_pods, of_kind, render
from tests.k8s.reach import Peer, elsewhere, may_connect, pod

BROKER, DATABASE, POOLER = "feedmill-broker", "feedmill-database", "feedmill-database-pooler-rw"

NEEDED = {
    "feedmill-scheduler": {(BROKER, 5672), (POOLER, 5432)},
    "feedmill-fetcher": {(BROKER, 5672)},
    "feedmill-enricher": {(BROKER, 5672)},
    "feedmill-writer": {(BROKER, 5672), (POOLER, 5432)},
    "feedmill-api": {(BROKER, 5672), (POOLER, 5432)},
    "feedmill-migrate": {(BROKER, 5672), (BROKER, 15672), (DATABASE, 5432)},
    "feedmill-batch": {(BROKER, 5672), (POOLER, 5432)},
    BROKER: {(BROKER, 4369), (BROKER, 25672), (BROKER, 35672)},
    DATABASE: {(DATABASE, 5432), (DATABASE, 8000)},
    POOLER: {(DATABASE, 5432), (DATABASE, 8000)},
}
PORTS = (4369, 5432, 5672, 8000, 8080, 9127, 9187, 15672, 15692, 25672, 35672)
"""All that anything here listens on."""


def test_pods_reach_what_they_need_and_nothing_else(objects: tuple[Object, ...]) -> None:
    names = all_pods(objects)
    for source in names:
        reached = {
            (target, port)
            for target in names
            for port in PORTS
            if may_connect(objects, pod(objects, source), pod(objects, target), port)
        }
        # By label the pooler's pods are the cluster's too, so the cluster's rules let these through as well.
        spare = {(POOLER, 8000)} | ({(POOLER, 5432)} if source in {DATABASE, POOLER} else set())
        assert reached - spare == NEEDED[source], source


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111"])
def test_only_what_fetches_reaches_the_web(objects: tuple[Object, ...], address: str) -> None:
    fetching = {"feedmill-fetcher", "feedmill-batch", "feedmill-api"}
    for name in all_pods(objects):
        for port in (80, 443, 8080):
            may = may_connect(objects, pod(objects, name), Peer(address=address), port)
            # Broker and database have to reach the API server, whose address is the cluster's affair.
            assert may == (name in fetching or (port == 443 and name in {BROKER, DATABASE, POOLER})), name


def refused_by_the_guard(address: str) -> bool:
    try:
        check_address(address)
    except Blocked:
        return True
    return False


ADDRESSES = [
    *("0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.255.255"),
    *(
        "192.0.0.192",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "255.255.255.255",
    ),
    *(
        "::1",
        "::ffff:10.0.0.1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
        "2001:db8::1",
        "2002:a00:1::1",
        "3fff::1",
    ),
    *("64:ff9b::a00:1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "fec0::1"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_the_fetchers_guard_refuses_the_policy_refuses_too(address: str) -> None:
    assert refused_by_the_guard(address)
    for overlay, name in (
        ("prod/queue-fetcher", "feedmill-fetcher"),
        ("prod/queue-fetcher", "feedmill-api"),
        ("prod/batch-fetcher", "feedmill-batch"),
    ):
        objects = render(overlay)
        assert not may_connect(objects, pod(objects, name), Peer(address=address), 80)


def test_the_policy_leaves_the_rest_of_the_web_open() -> None:
    """Fetchers may reach a sample of every /8 that the address guard allows."""
    objects = render("prod/queue-fetcher")
    fetcher = pod(objects, "feedmill-fetcher")
    sample = [f"{first}.77.88.99" for first in range(1, 224)] + ["2a00:1450::1", "2400:cb00::1", "2c0f::1"]
    public = [address for address in sample if not refused_by_the_guard(address)]
    assert len(public) > 200
    assert [address for address in public if not may_connect(objects, fetcher, Peer(address=address), 443)] == []


def test_everybody_may_ask_for_names(objects: tuple[Object, ...]) -> None:
    resolver = Peer({"k8s-app": "kube-dns"}, {"kubernetes.io/metadata.name": "kube-system"})
    for name in all_pods(objects):
        for protocol in ("UDP", "TCP"):
            assert may_connect(objects, pod(objects, name), resolver, 53, protocol)
            assert may_connect(objects, pod(objects, name), Peer(address="169.254.20.10"), 53, protocol)
        assert not may_connect(objects, pod(objects, name), resolver, 9153)


def test_operators_reach_their_own(objects: tuple[Object, ...]) -> None:
    assert may_connect(objects, elsewhere("rabbitmq-system"), pod(objects, BROKER), 15672)
    for port in (5432, 8000):
        assert may_connect(objects, elsewhere("cnpg-system"), pod(objects, DATABASE), port)
    assert not may_connect(objects, elsewhere("default"), pod(objects, BROKER), 15672)
    assert not may_connect(objects, elsewhere("default"), pod(objects, DATABASE), 5432)


def test_keda_reaches_the_broker_where_there_is_keda(objects: tuple[Object, ...]) -> None:
    may = may_connect(objects, elsewhere("keda"), pod(objects, BROKER), 15672)
    assert may == bool(of_kind(objects, "ScaledObject"))


def test_prometheus_reaches_all_metrics_where_there_are_monitors(objects: tuple[Object, ...]) -> None:
    watched = bool(of_kind(objects, "ServiceMonitor"))
    for name, port in ((BROKER, 15692), (DATABASE, 9187), (POOLER, 9127), ("feedmill-writer", 8000)):
        assert may_connect(objects, elsewhere("monitoring"), pod(objects, name), port) == watched
        assert not may_connect(objects, elsewhere("default"), pod(objects, name), port)


def test_requests_come_to_the_api_from_the_ingress_controller_and_from_namespaces_that_are_labelled(
    objects: tuple[Object, ...],
) -> None:
    api = pod(objects, "feedmill-api")
    labelled = Peer({}, {"kubernetes.io/metadata.name": "search", "feedmill.dev/api-clients": "allowed"})
    for peer in (elsewhere("ingress-nginx"), labelled):
        assert may_connect(objects, peer, api, 8080)
        assert not may_connect(objects, peer, api, 8000)
        assert not may_connect(objects, peer, pod(objects, "feedmill-writer"), 8080)
    for name in ("default", "monitoring"):
        assert not may_connect(objects, elsewhere(name), api, 8080)


def test_consumers_come_from_namespaces_that_are_labelled(objects: tuple[Object, ...]) -> None:
    consumers = Peer({}, {"kubernetes.io/metadata.name": "search", "feedmill.dev/database-clients": "allowed"})
    for name in (DATABASE, POOLER):
        assert may_connect(objects, consumers, pod(objects, name), 5432)
    assert not may_connect(objects, consumers, pod(objects, BROKER), 5672)


def test_exceptions_lie_within_what_they_are_exceptions_from(objects: tuple[Object, ...]) -> None:
    """The API server refuses a policy where they don't."""
    for one in of_kind(objects, "NetworkPolicy"):
        for rule in one["spec"].get("egress", ()):
            for block in (peer["ipBlock"] for peer in rule.get("to", ()) if "ipBlock" in peer):
                whole = ipaddress.ip_network(block["cidr"])
                for part in map(ipaddress.ip_network, block.get("except", ())):
                    assert part.version == whole.version
                    assert part.subnet_of(whole)  # type: ignore[arg-type]  # of one version
                    assert part != whole
