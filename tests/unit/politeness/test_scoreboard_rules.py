"""Whatever happens in whatever order: the rules that the scoreboard never breaks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.fetcher.politeness.decisions import Evicted, Held, Idle, Report, Start
from services.fetcher.politeness.limits import HostPolicy, Limits
from services.fetcher.politeness.scoreboard import Scoreboard

CONCURRENCY, MAX_ACTIVE, SHARE, HOLD, INTERVAL = 2, 4, 5, 20.0, 1.0
LIMITS = Limits(
    host_concurrency=CONCURRENCY,
    host_min_interval_seconds=INTERVAL,
    max_active=MAX_ACTIVE,
    max_held_per_group=SHARE,
    max_hold_seconds=HOLD,
    connect_failure_seconds=30.0,
    policies=(HostPolicy("slow", 1, 7.0),),
)
GROUPS = ["a", "b", "slow"]
REPORTS = st.builds(
    Report,
    latency_seconds=st.floats(0.001, 30.0),
    connected=st.sampled_from([True, True, True, False]),
    succeeded=st.booleans(),
    throttled=st.sampled_from([False, False, False, True]),
    retry_after_seconds=st.none() | st.floats(0.0, 200.0),
)


def interval_of(group: str) -> float:
    return 7.0 if group == "slow" else INTERVAL


def concurrency_of(group: str) -> int:
    return 1 if group == "slow" else CONCURRENCY


class ScoreboardRules(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.board: Scoreboard[int] = Scoreboard(LIMITS)
        self.numbers = itertools.count()
        self.group: dict[int, str] = {}
        self.held: dict[int, float] = {}
        self.called: set[int] = set()
        self.started: set[int] = set()
        self.sent: set[int] = set()
        self.last_sent: dict[str, float] = defaultdict(lambda: -1e9)
        self.shut_until: dict[str, float] = defaultdict(lambda: -1e9)
        self.ended: set[int] = set()

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 60.0, 4000.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(group=st.sampled_from(GROUPS), goes=st.sampled_from(["", "", "", "front", "ahead"]))
    def admit(self, group: str, goes: str) -> None:
        ticket = next(self.numbers)
        if isinstance(self.board.admit(group, ticket, self.now, front=bool(goes), ahead=goes == "ahead"), Held):
            assert self.shut_until[group] - self.now <= HOLD
            self.held[ticket] = self.now
            self.group[ticket] = group

    @rule()
    def call(self) -> None:
        call = self.board.next_decision(self.now)
        if isinstance(call, Idle):
            assert call.seconds is None or call.seconds > 0, "it would be asked again and again"
            assert all(self.now - since < HOLD for since in self.held.values()), "held for too long"
            return
        assert self.now - self.held.pop(call.ticket) <= HOLD or isinstance(call, Evicted)
        if isinstance(call, Evicted):
            self._end(call.ticket)
            return
        group = self.group[call.ticket]
        assert self.now >= self.shut_until[group]
        self.called.add(call.ticket)

    @precondition(lambda self: self.called)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.called)))
        self.called.discard(ticket)
        if self.board.confirm_start(ticket, self.now) is None:
            assert self.now >= self.shut_until[self.group[ticket]], "throttled or down, and asked all the same"
            self.started.add(ticket)
        else:
            self._end(ticket)

    @precondition(lambda self: self.started - self.sent)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.started - self.sent)))
        group = self.group[ticket]
        assert self.now - self.last_sent[group] >= interval_of(group) - 1e-9, "two requests too close to each other"
        self.last_sent[group] = self.now
        self.sent.add(ticket)
        self.board.sent(ticket, self.now)

    @precondition(lambda self: self.started)
    @rule(data=st.data(), report=REPORTS)
    def finish(self, data: st.DataObject, report: Report) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.started)))
        self.started.discard(ticket)
        self.sent.discard(ticket)
        group = self.group[ticket]
        self.board.finish(ticket, self.now, report)
        shut = 30.0 if not report.connected else 0.0
        if report.throttled:
            shut = max(shut, 30.0, report.retry_after_seconds or 0.0)
        self.shut_until[group] = max(self.shut_until[group], self.now + shut)
        self._end(ticket)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.held)))
        if self.board.withdraw(ticket):
            del self.held[ticket]
            self._end(ticket)

    @precondition(lambda self: self.called)
    @rule(data=st.data())
    def cancel_start(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.called)))
        self.called.discard(ticket)
        self.board.cancel_start(ticket)
        self._end(ticket)

    @rule()
    def forget(self) -> None:
        self.board.forget_idle(self.now, idle_seconds=60.0)

    @invariant()
    def never_over_a_cap(self) -> None:
        active = self.called | self.started
        assert len(active) <= MAX_ACTIVE
        for group in GROUPS:
            assert sum(1 for ticket in active if self.group[ticket] == group) <= concurrency_of(group)

    @invariant()
    def the_counts_are_those_of_the_jobs(self) -> None:
        held, active = self.board.counts()
        assert active == len(self.called | self.started)
        assert held <= len(self.held)  # those that were let out and have not been told are in no line any more
        assert (held, active) == (self._totals().held, self._totals().active)

    def teardown(self) -> None:
        """Let everything come to its end: every job ends exactly once, and the counts return to zero."""
        for ticket in list(self.called | self.started):
            if ticket in self.called:
                self.board.cancel_start(ticket)
            else:
                self.board.finish(ticket, self.now, Report(0.1))
            self._end(ticket)
        self.now += 2 * HOLD
        while not isinstance(call := self.board.next_decision(self.now), Idle):
            if isinstance(call, Start):
                self.board.cancel_start(call.ticket)
            del self.held[call.ticket]
            self._end(call.ticket)
        assert not self.held, "a job never ended"
        assert self.board.counts() == (0, 0)
        self.board.forget_idle(self.now + 1e6, idle_seconds=60.0)
        assert self.board.dump(self.now) == []

    def _end(self, ticket: int) -> None:
        assert ticket not in self.ended, "a job ended twice"
        self.ended.add(ticket)

    def _totals(self) -> Any:
        return self.board.totals(self.now)


TestScoreboardRules = ScoreboardRules.TestCase
TestScoreboardRules.settings = settings(stateful_step_count=60)
