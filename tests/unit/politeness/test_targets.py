"""What a redirect finds out about a host does not silence the host's own feeds."""

from __future__ import annotations

import pytest

from services.fetcher.politeness.decisions import Evicted, FastDelay, Held, Idle, Report, Skip, Start, Target
from services.fetcher.politeness.limits import Limits
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.request import prepare_request
from shared.wire.jobs import ResumeState
from tests.factories import NOW, make_job

GOOD = Report(latency_seconds=0.1)
DOWN = Report(latency_seconds=0.1, connected=False, succeeded=False)
PLAIN, SECURE = Target("http"), Target("https")
STRANGER = Target("http", is_foreign=True)


def board(**limits: object) -> Scoreboard[str]:
    return Scoreboard(Limits(**limits))  # type: ignore[arg-type]


def fetch(scoreboard: Scoreboard[str], target: Target, now: float, report: Report) -> None:
    ticket = f"{target} at {now}"
    assert isinstance(scoreboard.admit("victim", ticket, now, target=target), Held)
    assert scoreboard.next_decision(now) == Start(ticket)
    assert scoreboard.confirm_start(ticket, now) is None
    scoreboard.sent(ticket, now)
    scoreboard.finish(ticket, now, report)


def test_a_strangers_redirect_that_finds_nobody_leaves_the_groups_own_feeds_alone() -> None:
    scoreboard = board()
    fetch(scoreboard, STRANGER, 0.0, DOWN)
    assert scoreboard.admit("victim", "stranger", 10.0, target=STRANGER) == Skip(590.0)
    fetch(scoreboard, PLAIN, 10.0, GOOD)
    assert isinstance(scoreboard.admit("victim", "again", 20.0, target=STRANGER), Held)  # somebody is there after all


def test_what_is_down_for_its_own_feeds_is_down_for_redirects_too() -> None:
    scoreboard = board()
    fetch(scoreboard, PLAIN, 0.0, DOWN)
    assert scoreboard.admit("victim", "x", 10.0, target=STRANGER) == Skip(590.0)


def test_a_host_without_tls_is_still_asked_by_http() -> None:
    scoreboard = board()
    fetch(scoreboard, SECURE, 0.0, DOWN)
    assert scoreboard.admit("victim", "x", 10.0, target=SECURE) == Skip(590.0)
    fetch(scoreboard, PLAIN, 10.0, GOOD)
    assert scoreboard.admit("victim", "y", 20.0, target=SECURE) == Skip(580.0)


def test_only_those_are_let_out_of_line_that_wait_for_what_is_down() -> None:
    scoreboard = board()
    scoreboard.admit("victim", "1", 0.0, target=STRANGER)
    scoreboard.next_decision(0.0)
    scoreboard.confirm_start("1", 0.0)
    scoreboard.admit("victim", "own", 0.0, target=PLAIN)
    scoreboard.admit("victim", "2", 0.0, target=STRANGER)
    scoreboard.finish("1", 0.5, DOWN)
    assert scoreboard.next_decision(0.5) == Evicted("2", Skip(600.0))
    assert scoreboard.next_decision(1.5) == Start("own")


def test_a_429_behind_a_strangers_redirect_rests_the_group_as_a_bare_one_and_redirects_for_as_long_as_asked() -> None:
    scoreboard = board(throttle_seconds=30.0, max_hold_seconds=20.0)
    asked = Report(0.1, succeeded=False, throttled=True, retry_after_seconds=86_400.0)
    fetch(scoreboard, STRANGER, 0.0, asked)
    assert scoreboard.admit("victim", "own", 15.0, target=PLAIN) == Held(can_start=False, is_new_host=False)
    assert scoreboard.next_decision(15.0) == Idle(15.0)
    assert scoreboard.next_decision(30.0) == Start("own")
    assert scoreboard.admit("victim", "x", 30.0, target=STRANGER) == Skip(86_370.0, throttled=True)
    assert scoreboard.admit("victim", "x", 86_399.0, target=STRANGER) == FastDelay()  # not into line: others wait there


def test_strangers_redirects_leave_a_slot_and_every_second_turn_to_the_hosts_own_feeds() -> None:
    scoreboard = board(host_concurrency=2, max_hold_seconds=1000.0)
    fetch(scoreboard, PLAIN, 0.0, GOOD)
    strangers = [f"stranger {number}" for number in range(40)]
    for ticket in strangers:
        scoreboard.admit("victim", ticket, 10.0, target=STRANGER, front=True)
    assert scoreboard.next_decision(10.0) == Start("stranger 0")
    scoreboard.sent("stranger 0", 10.0)
    assert scoreboard.next_decision(20.0) == Idle(990.0)  # the other slot stays free: it may take them half a minute
    assert isinstance(scoreboard.admit("victim", "own", 20.0, target=PLAIN), Held)
    assert scoreboard.next_decision(20.0) == Start("own")
    scoreboard.sent("own", 20.0)
    scoreboard.finish("own", 20.1, GOOD)
    scoreboard.finish("stranger 0", 40.0, Report(29.0))
    assert scoreboard.next_decision(40.0) == Start("stranger 1")


@pytest.mark.parametrize("concurrency", [1, 2])
def test_own_feeds_and_strangers_redirects_that_fail_before_they_leave_take_turns(concurrency: int) -> None:
    scoreboard = board(host_concurrency=concurrency)
    for number in range(3):
        scoreboard.admit("victim", f"own {number}", 0.0, target=PLAIN)
        scoreboard.admit("victim", f"stranger {number}", 0.0, target=STRANGER, front=True)
    called = []
    for now in range(6):
        call = scoreboard.next_decision(float(now))
        assert isinstance(call, Start)
        scoreboard.finish(call.ticket, float(now), Report(None, connected=None, succeeded=False))
        called.append(call.ticket)
    assert called == ["stranger 0", "own 0", "stranger 1", "own 1", "stranger 2", "own 2"]


def test_a_crowd_of_strangers_redirects_leaves_room_in_line() -> None:
    scoreboard = board(max_hold_seconds=20.0)
    fetch(scoreboard, PLAIN, 0.0, GOOD)
    crowd = [scoreboard.admit("victim", str(number), 10.0, target=STRANGER, front=True) for number in range(30)]
    assert isinstance(crowd[-1], FastDelay)
    assert isinstance(scoreboard.admit("victim", "own", 10.0, target=PLAIN), Held)


def test_a_host_without_feeds_of_its_own_gives_redirects_all_slots() -> None:
    scoreboard = board(host_concurrency=2)
    for ticket in "12":
        scoreboard.admit("hub", ticket, 0.0, target=STRANGER, front=True)
    assert scoreboard.next_decision(0.0) == Start("1")
    scoreboard.sent("1", 0.0)
    assert scoreboard.next_decision(1.0) == Start("2")


def test_the_slowest_page_of_a_host_behind_a_strangers_redirect_does_not_slow_its_feeds() -> None:
    scoreboard = board()
    fetch(scoreboard, PLAIN, 0.0, GOOD)
    fetch(scoreboard, STRANGER, 10.0, Report(29.0))
    fetch(scoreboard, PLAIN, 20.0, Report(None, connected=None, succeeded=False))
    assert scoreboard.dump(30.0)[0]["latency_seconds"] == 0.1


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://victim.example/x", STRANGER),
        ("https://victim.example/x", Target("https", is_foreign=True)),
        ("http://victim.example./x", Target("http", is_rooted=True, is_foreign=True)),
        ("https://news.example/feed", SECURE),
    ],
)
def test_a_target_is_told_by_the_url_and_by_who_leads_there(url: str, target: Target) -> None:
    state = ResumeState(url=url, visited=("http://news.example/feed",), started_at=NOW, spent_seconds=0.1)
    job = make_job(resume=state)
    assert prepare_request(job, frozenset()).target == target
