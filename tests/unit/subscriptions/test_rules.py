"""Which feeds of a list are taken, and when their first polls are due."""

from __future__ import annotations

from ipaddress import ip_network
from itertools import pairwise

import pytest

from services.admin.registry import NewFeed
from services.admin.subscriptions.first_polls import AT_ONCE, PER_SECOND, FirstPolls
from services.admin.subscriptions.model import Listed
from services.admin.subscriptions.rules import Reason, Skipped, check_listed


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", Reason.NO_URL),
        ("  ", Reason.NO_URL),
        ("ftp://a.example/", Reason.NOT_HTTP),
        ("feed:ftp://a.example/", Reason.NOT_HTTP),
        ("javascript:alert(1)", Reason.NOT_HTTP),
        ("/feed", Reason.BAD_URL),
        ("a.example/feed", Reason.BAD_URL),
        ("http://", Reason.BAD_URL),
        ("http://a b.example/", Reason.BAD_URL),
        ("http://a.example:x/", Reason.BAD_URL),
        ("http://a.example/" + "x" * 2000, Reason.TOO_LONG),
        ("http://127.0.0.1/feed", Reason.REFUSED_ADDRESS),
        ("http://0x7f.1/feed", Reason.REFUSED_ADDRESS),
        ("http://2130706433/feed", Reason.REFUSED_ADDRESS),
        ("http://user:secret@10.0.0.1:8080/feed", Reason.REFUSED_ADDRESS),
        ("http://169.254.169.254/latest/meta-data", Reason.REFUSED_ADDRESS),
        ("http://[::1]/feed", Reason.REFUSED_ADDRESS),
        ("http://[::ffff:10.0.0.1]/feed", Reason.REFUSED_ADDRESS),
        ("http://LOCALHOST./feed", Reason.REFUSED_ADDRESS),
        ("http://x.localhost/feed", Reason.REFUSED_ADDRESS),
    ],
)
def test_a_url_that_cannot_be_polled_says_why(url: str, reason: Reason) -> None:
    skipped = check_listed(Listed(7, url, "News"), ())
    assert isinstance(skipped, Skipped)
    assert (skipped.line, skipped.reason, skipped.reason.is_refusal) == (7, reason, True)
    assert "secret" not in skipped.detail


def test_a_network_may_be_allowed() -> None:
    for url in ("http://127.0.0.1:8080/feed", "http://localhost/feed"):
        assert isinstance(check_listed(Listed(1, url), (ip_network("127.0.0.0/8"),)), NewFeed)


def test_a_source_type_has_to_be_installed() -> None:
    skipped = check_listed(Listed(1, "http://a.example/", source_type="HTML+XPath"), ())
    assert isinstance(skipped, Skipped)
    assert skipped.reason is Reason.UNKNOWN_SOURCE_TYPE


def test_a_feed_is_registered_in_one_form() -> None:
    listed = Listed(1, " HTTP://A.Example/Feed#x ", "News", ("a",), "http://a.example/")
    assert check_listed(listed, ()) == NewFeed(
        "http://a.example/Feed", name="News", tags=("a",), site_url="http://a.example/"
    )
    plain = check_listed(Listed(1, "http://a.example/", "", (), "javascript:x"), ())
    assert isinstance(plain, NewFeed)
    assert (plain.name, plain.site_url) == (None, None)


def test_a_handful_of_feeds_is_due_at_once_and_many_are_spread_by_their_number() -> None:
    polls = FirstPolls(lambda _: 1.0)
    waits = [polls.next_wait(f"h{n}.example") for n in range(10_100)]
    assert set(waits[: AT_ONCE + 1]) == {0.0}
    assert waits == sorted(waits)
    assert waits[-1] == polls.longest_seconds == pytest.approx(10_000 / PER_SECOND, rel=0.01)


def test_feeds_of_one_host_are_as_far_apart_as_the_host_wants() -> None:
    polls = FirstPolls(lambda group: 10.0 if group == "slow.example" else 1.0)
    waits = [polls.next_wait("slow.example" if n % 2 else f"h{n}.example") for n in range(1000)]
    slow = waits[1::2]
    assert min(after - before for before, after in pairwise(slow)) >= 10.0
    assert max(waits[::2]) < 40.0
