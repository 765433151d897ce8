from __future__ import annotations

import pytest

from services.fetcher.politeness.limits import HostPolicy, parse_policies


def test_policies_are_read_in_order() -> None:
    text = " *.Slow.example concurrency=1 interval=10;feeds.example:8080 interval=0.5 ; "
    assert parse_policies(text) == (
        HostPolicy("*.slow.example", 1, 10.0),
        HostPolicy("feeds.example:8080", None, 0.5),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a.example", "says nothing"),
        ("a.example speed=3", "speed=3"),
        ("a.example interval=1 interval=2", "there twice"),
        ("a.example concurrency=0", "concurrency for a.example"),
        ("a.example concurrency=1.5", "concurrency for a.example"),
        ("a.example interval=-1", "interval for a.example"),
        ("a.example interval=nan", "interval for a.example"),
        ("a,b interval=1", "'a,b' is no pattern"),
    ],
)
def test_a_policy_that_cannot_be_read_says_which_and_why(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must be") as caught:
        parse_policies(text)
    assert complaint in str(caught.value)
