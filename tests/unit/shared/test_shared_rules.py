"""The small pure rules of `shared/`: groups, masks, retries, topology, logs."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import Counter

import pytest

from services.fetcher.http.redirects import resolve
from shared.broker.shards import in_ranges, shard_of
from shared.broker.topology import TRIALS, build_topology, fetch_routing_key
from shared.errors import DeadLetter, DecodeError, MessageTooLarge, TryLater, Unprocessable, after_failure
from shared.observability.logs import JsonFormatter, TextFormatter
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url, host_of, politeness_group
from shared.settings import BrokerSettings, read_settings


@pytest.mark.parametrize(
    ("url", "group"),
    [
        ("http://News.Example/feed", "news.example"),
        ("https://news.example:443/feed", "news.example"),
        ("http://news.example:443/feed", "news.example:443"),
        ("http://news.example.:8080/", "news.example:8080"),
        ("http://news\u3002example\u3002/", "news.example"),
        ("http://news\uff0eexample\uff61:80/", "news.example"),
        ("http://n%65ws%2eexample/", "news.example"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1:8080/", "127.0.0.1:8080"),
        ("http://0177.0.0.1./", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://\uff11\uff12\uff17.0.0.1/", "127.0.0.1"),
        ("http://[2001:DB8:0:0::01]/", "[2001:db8::1]"),
        ("http://[::ffff:192.0.2.1]/", "192.0.2.1"),
        ("http://user:pw@news.example/feed", "news.example"),
        ("https://bücher.example/feed", "xn--bcher-kva.example"),
        ("http://[::1]:8080/feed", "[::1]:8080"),
        ("https://rsshub.example/twitter/someone", "rsshub.example/twitter"),
    ],
)
def test_a_group_is_host_and_port(url: str, group: str) -> None:
    assert politeness_group(url, frozenset({"rsshub.example"})) == group


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        (" http://a.example/x \n", "http://a.example/x"),
        ("HTTP://Me:Pw@A.Example:80/X?Y#z", "http://Me:Pw@a.example:80/X?Y"),
    ],
)
def test_a_url_is_registered_in_one_form(url: str, clean: str) -> None:
    assert clean_url(url) == clean


@pytest.mark.parametrize("url", ["http://a.example/b c", "http://a.example/\x00", "http://a.example/" + "x" * 2000])
def test_a_url_that_cannot_be_registered_says_why(url: str) -> None:
    with pytest.raises(BadUrl, match=r"white space|2000"):
        clean_url(url)


NO_HOSTS = [
    "victim..",
    ".victim",
    "a..b",
    "victim\u3002\u3002",
    "a%2e%2eb",
    ".",
    "x" * 64,
    "a." * 127 + "b",
    "1.2.3.4.5",
    "256.1.1.1",
]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_an_impossible_host_name_is_a_bad_url_everywhere(host: str) -> None:
    for refuse in (politeness_group, host_of, clean_url, lambda url: resolve("http://stranger.example/", url)):
        with pytest.raises(BadUrl):
            refuse(f"http://{host}:8080/feed")


@pytest.mark.parametrize("url", ["", "news.example/feed", "ftp://a/", "file:///etc/passwd", "http://", "http://a:b/"])
def test_a_url_that_is_no_feeds_says_why(url: str) -> None:
    with pytest.raises(BadUrl, match=r".{10}"):
        politeness_group(url)


@pytest.mark.parametrize("userinfo", ['u:sec"ret/x', "u:sec?ret", "u:sec\u2100ret", "u:sec#ret"])
def test_why_a_url_is_none_quotes_no_password(userinfo: str) -> None:
    with pytest.raises(BadUrl) as raised:
        politeness_group(f"http://{userinfo}@h.example/")
    assert "sec" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("amqp://guest:secret@host:5672/x", "amqp://***@host:5672/x"),
        ("at http://token@a.example/ and http://b.example/@me", "at http://***@a.example/ and http://b.example/@me"),
        ("postgresql://u:p%40ss@h/d?x=1", "postgresql://***@h/d?x=1"),
        ("postgresql://h/d?user=u&password=p&x=1", "postgresql://h/d?user=u&password=***&x=1"),
        ("http://a.example/feed?Access_Token=abc#x", "http://a.example/feed?Access_Token=***#x"),
        ("amqp://u:p@ss/w:rd#1%x@h:5672/ is odd", "amqp://***@h:5672/ is odd"),
        ("write to a@b.example", "write to a@b.example"),
    ],
)
def test_credentials_in_urls_are_masked(text: str, masked: str) -> None:
    assert mask_credentials(text) == masked


def test_a_log_line_is_one_json_object_without_secrets() -> None:
    record = logging.LogRecord("room", logging.INFO, "", 0, "polled %s", ("http://u:secret@h/\n",), None)
    record.feed_id = 7
    line = JsonFormatter("fetcher").format(record)
    parsed = json.loads(line)
    assert "\n" not in line
    assert "secret" not in line
    assert (parsed["service"], parsed["level"], parsed["feed_id"]) == ("fetcher", "info", 7)


def test_a_log_line_for_people_is_one_line_that_no_server_can_forge() -> None:
    record = logging.LogRecord("room", logging.WARNING, "", 0, "polled %s", ("http://u:secret@h/",), None)
    record.feed_id = 7
    record.error = "odd\n10:00:00.000 INFO    all is well"
    record.status = None
    line = TextFormatter().format(record)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING polled http://\*\*\*@h/ feed_id=7"
        r' error="odd\\n10:00:00.000 INFO    all is well"',
        line,
    )


def test_a_log_line_for_people_has_its_traceback_below_it() -> None:
    try:
        raise ValueError("amqp://u:secret@h/")
    except ValueError:
        record = logging.LogRecord("room", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    first, *rest = TextFormatter().format(record).splitlines()
    assert first.endswith("ERROR   failed ")
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "ValueError: amqp://***@h/"


@pytest.mark.parametrize(
    ("error", "failures", "decision"),
    [
        (ValueError(), 0, TryLater(1)),
        (ValueError(), 2, TryLater(3)),
        (ValueError(), 3, DeadLetter("exhausted")),
        (DecodeError(), 0, DeadLetter("undecodable")),
        (MessageTooLarge(), 0, DeadLetter("too_large")),
        (Unprocessable(), 0, DeadLetter("unprocessable")),
    ],
)
def test_a_failed_message_is_retried_or_dead_lettered_by_its_error(
    error: Exception, failures: int, decision: TryLater | DeadLetter
) -> None:
    assert after_failure(error, failures=failures, most=3) == decision


def test_delays_are_part_of_the_queue_names_down_to_the_millisecond() -> None:
    topology = build_topology(fast_delay_seconds=0.25, retry_delay_seconds=3600, message_retry_seconds=60)
    queues = {queue.name: queue for queue in topology.queues}
    assert queues["fetcher.fast-delay.v2.0.25s"].arguments["x-message-ttl"] == 250
    assert queues["fetcher.retry.v2.3600s"].arguments["x-message-ttl"] == 3_600_000


def test_a_delay_queue_takes_every_message_of_its_exchange_and_keeps_the_routing_key() -> None:
    topology = BrokerSettings().topology()
    exchanges = {exchange.name: exchange.type for exchange in topology.exchanges}
    for name in (topology.fetcher.fast_delay, topology.fetcher.retry):
        queue = next(queue for queue in topology.queues if queue.name == name)
        assert (queue.exchange, exchanges[queue.exchange]) == (name, "fanout")
        assert queue.arguments["x-dead-letter-exchange"] == ""
        assert "x-dead-letter-routing-key" not in queue.arguments


def test_no_queue_of_the_topology_can_lose_a_message_by_its_arguments() -> None:
    topology = build_topology(
        fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1
    )
    for queue in topology.queues:
        assert queue.arguments["x-queue-type"] == "quorum"
        if queue.name == TRIALS.queue:
            continue  # the results of dry runs may be lost
        if "x-dead-letter-exchange" in queue.arguments:
            assert queue.arguments["x-dead-letter-strategy"] == "at-least-once"
            assert queue.arguments["x-overflow"] == "reject-publish"
        if queue.name.endswith(".dead"):
            assert int(queue.arguments["x-delivery-limit"]) >= 1_000_000
        elif "x-delivery-limit" in queue.arguments:
            assert "x-dead-letter-exchange" in queue.arguments


def test_each_group_has_one_shard_and_always_the_same() -> None:
    assert [fetch_routing_key(f"{host}.example", 12) for host in "abc"] == [
        "feed.fetch.01.v1",
        "feed.fetch.03.v1",
        "feed.fetch.07.v1",
    ], "another hash moves every host to another fetcher while the old one still asks it"
    stage = BrokerSettings().topology().fetcher
    assert stage.queue_of("a.example") == stage.queues[shard_of("a.example", 12)] == "fetcher.01"


@pytest.mark.parametrize("shards", [1, 12, 100])
def test_groups_are_spread_evenly_over_the_shards(shards: int) -> None:
    held = Counter(shard_of(f"host{n}.example", shards) for n in range(200 * shards))
    assert set(held) == set(range(shards))
    assert 140 <= min(held.values()) <= max(held.values()) <= 260


def test_each_shard_is_fed_by_its_own_key() -> None:
    topology = BrokerSettings(fetcher_shards=100).topology()
    queues = {queue.name: queue for queue in topology.queues}
    for n in range(1000):
        queue = queues[topology.fetcher.queue_of(f"host{n}")]
        assert queue.bindings == (queue.name, fetch_routing_key(f"host{n}", 100))


def test_a_wrong_setting_is_named_and_its_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.errors import ConfigurationError

    monkeypatch.setenv("FEEDMILL_AMQP_URL", "amqp://user:secret@host:notaport/")
    monkeypatch.setenv("FEEDMILL_FAST_DELAY_SECONDS", "0")
    with pytest.raises(ConfigurationError) as error:
        read_settings(BrokerSettings)
    assert "FEEDMILL_AMQP_URL" in str(error.value)
    assert "FEEDMILL_FAST_DELAY_SECONDS" in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ([], ""),
        (["writer"], "writer"),
        ([f"fetcher.{n:02d}" for n in range(12)], "fetcher.00-11"),
        (["fetcher.03", "fetcher.01", "fetcher.00", "fetcher.09"], "fetcher.00-01, fetcher.03, fetcher.09"),
    ],
)
def test_a_log_line_names_ranges_of_shards(queues: list[str], said: str) -> None:
    assert in_ranges(queues) == said
