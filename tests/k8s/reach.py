"""Evaluates the NetworkPolicies by Kubernetes' rules: which pod may connect to which."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.k8s.manifests import Object, Objects, all_pods, of_kind, selects


@dataclass(frozen=True)
class Peer:
    """One end of a connection: a pod (its labels, and those of its namespace if that is another), or an address."""

    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: Mapping[str, str] | None = None
    address: str | None = None


def pod(objects: Objects, owner: str) -> Peer:
    """Return a pod of our namespace."""
    return Peer(all_pods(objects)[owner])


def elsewhere(namespace: str, **labels: str) -> Peer:
    """Return a pod of another namespace."""
    return Peer(labels, {"kubernetes.io/metadata.name": namespace})


def may_connect(objects: Objects, source: Peer, target: Peer, port: int, protocol: str = "TCP") -> bool:
    """Return whether both the source's egress and the target's ingress let a connection through."""
    return _allowed(objects, "Egress", source, target, port, protocol) and _allowed(
        objects, "Ingress", target, source, port, protocol
    )


def _allowed(objects: Objects, direction: str, subject: Peer, other: Peer, port: int, protocol: str) -> bool:
    if subject.namespace is not None or subject.address is not None:
        return True  # our policies are about our pods
    policies = [
        one["spec"]
        for one in of_kind(objects, "NetworkPolicy")
        if direction in one["spec"]["policyTypes"] and selects(one["spec"]["podSelector"], subject.labels)
    ]
    rules = [rule for policy in policies for rule in policy.get(direction.lower(), ())]
    peers = "to" if direction == "Egress" else "from"
    return not policies or any(
        _fits_port(rule, port, protocol) and (("to" not in rule and "from" not in rule) or _fits(rule[peers], other))
        for rule in rules
    )


def _fits_port(rule: Object, port: int, protocol: str) -> bool:
    return "ports" not in rule or any(
        one.get("protocol", "TCP") == protocol
        and one.get("port", 1) <= port <= one.get("endPort", one.get("port", 65535))
        for one in rule["ports"]
    )


def _fits(peers: list[Object], other: Peer) -> bool:
    return any(_fits_one(peer, other) for peer in peers)


def _fits_one(peer: Object, other: Peer) -> bool:
    if "ipBlock" in peer:
        if other.address is None:
            return False
        address = ipaddress.ip_address(other.address)
        inside = address in ipaddress.ip_network(peer["ipBlock"]["cidr"])
        return inside and not any(address in ipaddress.ip_network(block) for block in peer["ipBlock"].get("except", ()))
    if other.address is not None:
        return False
    if "namespaceSelector" in peer:
        if other.namespace is None or not selects(peer["namespaceSelector"], other.namespace):
            return False
    elif other.namespace is not None:
        return False
    return selects(peer.get("podSelector", {}), other.labels)
