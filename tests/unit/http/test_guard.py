from __future__ import annotations

import ipaddress

import pytest

from services.fetcher.http.address_guard import Blocked, check_address


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "192.0.0.192",
        "168.63.129.16",
        "fec0::1",
        "64:ff9b:1::7f00:1",
        "::127.0.0.1",
        "::ffff:0:10.0.0.1",
        "3fff::1",
        "4000::1",
        "2001:0:5ef5:79fd:0:0:80ff:fffe",  # Teredo of 127.0.0.1
    ],
)
def test_an_address_that_is_not_public_is_blocked(address: str) -> None:
    with pytest.raises(Blocked, match="FEEDMILL_ALLOW_NETWORKS"):
        check_address(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"])
def test_a_public_address_passes(address: str) -> None:
    check_address(address)


def test_an_allowed_network_passes_and_only_that() -> None:
    allowed = (ipaddress.ip_network("127.0.0.0/8"),)
    check_address("127.0.0.9", allowed)
    check_address("::ffff:127.0.0.9", allowed)
    with pytest.raises(Blocked):
        check_address("10.0.0.1", allowed)
