"""How often a client may fail."""

from __future__ import annotations

from random import Random

from services.api.access.failures import BURST, MOST_ADDRESSES, SECONDS_EACH, Failures


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def failing(address: str | None) -> tuple[Failures, Clock]:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(BURST):
        assert failures.wait_seconds(address) == 0
        failures.note(address)
    return failures, clock


def test_after_a_burst_an_address_waits_and_then_fails_at_a_steady_rate() -> None:
    failures, clock = failing("192.0.2.1")
    for _ in range(3):
        assert failures.wait_seconds("192.0.2.1") == SECONDS_EACH
        clock.now += SECONDS_EACH
        assert failures.wait_seconds("192.0.2.1") == 0
        failures.note("192.0.2.1")
    clock.now += BURST * SECONDS_EACH
    failures.note("192.0.2.1")
    assert failures.wait_seconds("192.0.2.1") == 0


def test_others_are_not_limited() -> None:
    failures, _ = failing("192.0.2.1")
    assert failures.wait_seconds("192.0.2.2") == 0


def test_a_network_of_ipv6_is_one_address() -> None:
    failures, _ = failing("2001:db8::1")
    assert failures.wait_seconds("2001:db8::ffff:1") > 0
    assert failures.wait_seconds("2001:db8:0:1::1") == 0
    failures, _ = failing("::ffff:192.0.2.1")
    assert failures.wait_seconds("192.0.2.1") > 0
    assert failures.wait_seconds("::ffff:192.0.2.2") == 0


def test_what_is_no_address_is_one() -> None:
    failures, _ = failing(None)
    assert failures.wait_seconds("a socket") > 0


def test_random_addresses_fill_no_memory() -> None:
    random, failures = Random(17), Failures(Clock())
    for _ in range(3 * MOST_ADDRESSES):
        failures.note(f"2001:db8:{random.randrange(65536):x}:{random.randrange(65536):x}::1")
    assert len(failures) <= MOST_ADDRESSES
