"""SQL: what a feed is in at a moment; a feed may be in several of these states."""

from __future__ import annotations

from enum import StrEnum

from shared.wire.outcomes import Outcome

WAITS_FOR_RETRY = "(enabled AND claim_id IS NOT NULL AND claim_expires_at > now() AND issued_at IS NULL)"
"""SQL: the feed's job failed softly or was skipped, and waits in the retry queue (or is on its way back)."""

RETRIED = ", ".join(f"'{outcome}'" for outcome in Outcome if outcome.is_attempt and not outcome.is_final)

FAILING = f"(enabled AND (failures > 0 OR coalesce(last_outcome, '') IN ({RETRIED})))"
"""SQL: the last attempt failed, whether or not it is to be retried."""


class State(StrEnum):
    """What a feed is in; a feed may be in several."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    DUE = "due"
    IN_FLIGHT = "in_flight"
    RETRYING = "retrying"
    FAILING = "failing"
    THROTTLED = "throttled"


STATES = {
    State.ENABLED: "enabled",
    State.DISABLED: "NOT enabled",
    State.DUE: "(enabled AND due_at <= now())",
    State.IN_FLIGHT: "(issued_at IS NOT NULL AND claim_expires_at > now())",
    State.RETRYING: WAITS_FOR_RETRY,
    State.FAILING: FAILING,
    State.THROTTLED: """(enabled AND politeness_group IN (
        SELECT throttled_groups.politeness_group FROM throttled_groups WHERE until > now()))""",
}
