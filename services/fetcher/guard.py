"""Pure: which addresses may be connected to. A feed's URL is a stranger's input, and so is every redirect."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Blocked(Exception):
    """The address is not one that feeds are fetched from."""


def check_address(text: str, allowed: tuple[Network, ...] = ()) -> None:
    """Return if `text` is a public address, or one of an allowed network.

    IPv6 forms that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are judged by that address.

    Raises:
        Blocked: loopback, private, link-local (cloud metadata), CGNAT, multicast, reserved, unspecified.
    """
    address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    if any(address in network for network in allowed):
        return
    if not address.is_global or address.is_multicast:
        raise Blocked(
            f"{text} is not a public address; if feeds are meant to be fetched from there, name its network in"
            " FEEDMILL_ALLOW_NETWORKS"
        )


def _inner(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address
