from __future__ import annotations

import pytest

from services.fetcher.shards.lease import NO_HEARTBEAT_SECONDS, Lease, lease_seconds


@pytest.mark.parametrize("heartbeat", [1, 5, 20, 60])
def test_a_lease_ends_before_the_broker_can_take_the_locks(heartbeat: float) -> None:
    assert 0 < lease_seconds(heartbeat) < heartbeat
    assert lease_seconds(0) == NO_HEARTBEAT_SECONDS


def test_a_lease_counts_from_when_the_broker_was_asked_and_not_from_its_answer() -> None:
    lease = Lease(15.0)
    assert not lease.is_certain(0.0), "nothing was answered yet"
    lease.renew(100.0)
    assert lease.is_certain(114.9)
    assert not lease.is_certain(115.0)
    lease.renew(110.0)
    assert lease.is_certain(124.9)
    lease.renew(105.0)  # an answer that was overtaken
    assert lease.is_certain(124.9)
