from __future__ import annotations

from services.scheduler.store import take_turns
from tests.factories import make_job


def test_groups_take_turns_in_the_queue_and_each_keeps_its_order() -> None:
    claimed = [make_job(feed_id=n, group=group) for n, group in enumerate("aaaabac")]
    assert [(job.group, job.feed_id) for job in take_turns(claimed)] == [
        ("a", 0),
        ("b", 4),
        ("c", 6),
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("a", 5),
    ]
