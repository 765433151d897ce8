"""Pure: which addresses may be connected to. A feed's URL is a stranger's input, and so is every redirect."""

from __future__ import annotations

import ipaddress
import re

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV4 = re.compile(r"[0-9.]+")  # `host_of` spells addresses in one way

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses that IANA assigns. Site-local, compatible and other private forms are outside of it."""

_ALSO_REFUSED = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # IETF protocol assignments; 192.0.0.192 is a cloud's metadata
            "168.63.129.16/32",  # a cloud's metadata and host agent, on a public address
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)


class Blocked(Exception):
    """Feeds are not fetched from this address."""


def check_address(text: str, allowed: tuple[Network, ...] = ()) -> None:
    """Return if `text` is a public address, or one of an allowed network.

    IPv6 forms that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are judged by that address.

    Raises:
        Blocked: loopback, private, link-local (cloud metadata), CGNAT, multicast, reserved, unspecified.
    """
    address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    if any(address in network for network in allowed):
        return
    if not _is_public(address):
        raise Blocked(
            f"{text} is not a public address; if feeds are meant to be fetched from there, name its network in"
            " FEEDMILL_ALLOW_NETWORKS"
        )


def check_host(host: str, allowed: tuple[Network, ...] = ()) -> None:
    """Return if the host of a URL (`host_of`) is a name, or an address that `check_address` takes.

    No name is looked up, since the client checks what a name stands for when it connects. `localhost` is an address.

    Raises:
        Blocked: as `check_address`.
    """
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        name = "127.0.0.1"
    if ":" in name or _IPV4.fullmatch(name):
        check_address(name, allowed)


def _is_public(address: Address) -> bool:
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return False
    refused = address.is_multicast or address.is_reserved or any(address in network for network in _ALSO_REFUSED)
    return address.is_global and not refused


def _inner(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address
