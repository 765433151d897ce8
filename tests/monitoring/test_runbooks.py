"""The page of alerts: a section for each, which begins with what to type; the commands are what the programs take."""

from __future__ import annotations

import re

import pytest

from tests.monitoring.rules import read_rules
from tests.runbook import arguments_of_feedmill, commands_in, parse_feedmill, read_page

PAGE = read_page("alerts")
ALERTS = {rule.name: rule for rule in read_rules() if rule.kind == "alert"}
SECTIONS = dict(re.findall(r"^### (\w+)\n\n(.+?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))

KUBERNETES_ONLY = {
    "FeedmillBatchLate",
    "FeedmillBatchUnseen",
    "FeedmillBrokerNodeMissing",
    "FeedmillQueueMembersMissing",
    "FeedmillDatabaseReplicaBehind",
    "FeedmillDatabaseStandbyMissing",
    "FeedmillBackupOld",
    "FeedmillWalArchivingFails",
}


def test_every_alert_has_its_section_in_the_same_order() -> None:
    assert list(SECTIONS) == list(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_a_section_begins_with_what_to_type_and_says_what_it_means_what_to_do_and_why(name: str) -> None:
    section = SECTIONS[name]
    severity = str(ALERTS[name].field("severity")).capitalize()
    assert re.match(
        rf"(    .+\n|\n)+\*\*{severity}\.\*\* .+?^- \*\*Do:\*\* .+?^- \*\*Why:\*\* ", section, re.MULTILINE | re.DOTALL
    )
    assert commands_in(section, "kubectl")
    assert bool(commands_in(section, "docker compose")) != (name in KUBERNETES_ONLY)


COMMANDS = [*commands_in(PAGE, "docker compose"), *commands_in(PAGE, "kubectl")]
FEEDMILL = {" ".join(words): words for line in COMMANDS if (words := arguments_of_feedmill(line)) is not None}


@pytest.mark.parametrize("command", FEEDMILL)
def test_feedmill_takes_what_the_page_tells_to_type(command: str) -> None:
    parse_feedmill(FEEDMILL[command])


def test_a_command_that_feedmill_does_not_have_is_found() -> None:
    for wrong in (["dead", "lift"], ["hosts", "--state", "odd"], ["status", "--verbose"]):
        with pytest.raises(Exception, match=r"(?i)no such|not one of"):
            parse_feedmill(wrong)
