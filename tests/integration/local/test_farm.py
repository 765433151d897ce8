"""The feed farm over real HTTP: each kind of site behaves as documented, and its record is complete."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import feedparser
import httpx
import pytest

from local.farm import Farm, FeedFormat, FeedKind, FeedSpec, demo_specs, named_specs

HOST = "127.0.0.2"
DELIVERING = [kind for kind in FeedKind if kind.delivers]


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
        yield client


def make_spec(kind: FeedKind = FeedKind.PLAIN, **more: object) -> FeedSpec:
    fields: dict[str, object] = {"name": "one", "host": HOST, "path": "/feed", "kind": kind, **more}
    return FeedSpec(**fields)  # type: ignore[arg-type]


def read_feed(body: bytes) -> list[tuple[str, str]]:
    """URL and title of every entry, as the libraries of the pipeline see them."""
    if body.startswith(b"{"):
        return [(item["url"], item["title"]) for item in json.loads(body)["items"]]
    return [(entry.link, entry.title) for entry in feedparser.parse(body).entries]


def fetch_patiently(farm: Farm, client: httpx.Client, spec: FeedSpec) -> list[tuple[str, str]]:
    """Return the articles of a reader that follows redirects and comes back after a failure."""
    for _ in range(3):
        try:
            response = client.get(farm.url(spec), follow_redirects=True)
        except httpx.TransportError:
            continue
        if response.is_success:
            return read_feed(response.content)
    return []


def test_the_demo_has_every_kind_and_format_on_many_hosts() -> None:
    specs = demo_specs()
    assert len(specs) >= 64
    assert len({spec.host for spec in specs}) >= 22
    assert {spec.kind for spec in specs} == set(FeedKind)
    formats = Counter(spec.format for spec in specs)
    assert max(formats.values()) - min(formats.values()) <= 2
    assert {spec.format for spec in specs if spec.kind is FeedKind.PLAIN} == set(FeedFormat)


def test_a_patient_reader_of_the_demo_gets_exactly_what_is_expected(client: httpx.Client) -> None:
    specs = [replace(spec, delay_seconds=spec.delay_seconds / 10) for spec in demo_specs()]
    with Farm(specs) as farm, ThreadPoolExecutor(32) as pool:
        for _wave in range(2):
            delivered = dict(
                zip(farm.specs, pool.map(lambda s: fetch_patiently(farm, client, s), farm.specs), strict=True)
            )
            for spec, entries in delivered.items():
                assert dict(entries) == farm.expected_of(spec), spec.name
                assert len(entries) == len(farm.expected_of(spec)), spec.name
            everything = {article for entries in delivered.values() for article in entries}
            assert everything == set(farm.expected_articles().items())
            farm.publish()


def test_titles_and_links_identify_each_article_of_the_demo() -> None:
    farm = Farm(demo_specs())
    articles = farm.expected_articles()
    assert len(set(articles.values())) == len(articles)
    assert all(title == " ".join(title.split()) for title in articles.values())
    assert any("&" in title for title in articles.values())
    assert any(not title.isascii() for title in articles.values())
    assert articles == Farm(demo_specs()).expected_articles()
    assert articles.keys().isdisjoint(Farm(demo_specs(), edition="second-run").expected_articles())


@pytest.mark.parametrize("kind", [kind for kind in DELIVERING if kind is not FeedKind.NO_VALIDATORS])
def test_304_is_honest_across_a_publish(client: httpx.Client, kind: FeedKind) -> None:
    spec = make_spec(kind, items_per_wave=2, moved_host="127.0.0.3", moved_path="/new", shared_group="wire")
    with Farm([spec]) as farm:
        url = f"http://127.0.0.3:{farm.port}/new" if kind is FeedKind.MOVED else farm.url(spec)
        conditions: list[dict[str, str]] = []
        for _wave in range(3):
            first = client.get(url)
            by_etag = {"If-None-Match": first.headers["etag"]}
            by_date = {"If-Modified-Since": first.headers["last-modified"]}
            for stale in conditions:
                assert client.get(url, headers=stale).status_code == 200
            conditions = [by_etag, by_date, {**by_etag, **by_date}]
            for condition in conditions:
                again = client.get(url, headers=condition)
                assert (again.status_code, again.content) == (304, b"")
                assert again.headers["etag"] == first.headers["etag"]
            farm.publish()


def test_a_growing_feed_lists_its_newest_articles_and_the_ledger_keeps_all(client: httpx.Client) -> None:
    with Farm([make_spec(FeedKind.GROWING, items=5, items_per_wave=3, window=6)]) as farm:
        before = farm.expected_articles()
        assert [farm.publish(), farm.publish(), farm.wave] == [1, 2, 2]
        listed = dict(read_feed(client.get(farm.url(farm.specs[0])).content))
        assert len(listed) == 6
        assert listed.keys().isdisjoint(before)
        assert farm.expected_articles() == {**before, **listed}


def test_gzip_is_for_those_who_accept_it() -> None:
    with Farm([make_spec(FeedKind.GZIP)]) as farm, httpx.Client(trust_env=False) as client:
        url = farm.url(farm.specs[0])
        with client.stream("GET", url, headers={"Accept-Encoding": "br, gzip"}) as response:
            packed = b"".join(response.iter_raw())
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["etag"].startswith("W/")
        for unwilling in ("identity", ""):
            plain = client.get(url, headers={"Accept-Encoding": unwilling})
            assert "content-encoding" not in plain.headers
            assert plain.content == gzip.decompress(packed)


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (FeedKind.ERROR_500, [500, 500, 500]),
        (FeedKind.NOT_FOUND, [404, 404, 404]),
        (FeedKind.GONE, [410, 410, 410]),
        (FeedKind.RECOVERS, [500, 500, 200]),
        (FeedKind.THROTTLED, [429, 429, 200]),
        (FeedKind.HTML, [200, 200, 200]),
        (FeedKind.NO_VALIDATORS, [200, 200, 200]),
        (FeedKind.SLOW, [200, 200, 200]),
    ],
)
def test_each_kind_answers_with_its_statuses(client: httpx.Client, kind: FeedKind, statuses: list[int]) -> None:
    with Farm([make_spec(kind, failures=2)]) as farm:
        responses = [client.get(farm.url(farm.specs[0])) for _ in statuses]
        assert [response.status_code for response in responses] == statuses
        assert [record.status for record in farm.access_log()] == statuses
        assert bool(farm.expected_articles()) == kind.delivers
        assert dict(read_feed(responses[-1].content)) == farm.expected_articles()
        assert (responses[0].headers.get("retry-after") == "1") == (kind is FeedKind.THROTTLED)


def test_a_moved_feed_points_to_another_host_that_serves_it(client: httpx.Client) -> None:
    with Farm([make_spec(FeedKind.MOVED, moved_host="127.0.0.3", moved_path="/new/feed")]) as farm:
        signpost = client.get(farm.url(farm.specs[0]))
        assert (signpost.status_code, signpost.headers["location"]) == (301, f"http://127.0.0.3:{farm.port}/new/feed")
        assert dict(read_feed(client.get(signpost.headers["location"]).content)) == farm.expected_articles()


def test_a_refusing_host_refuses_while_the_others_serve(client: httpx.Client) -> None:
    refusing = make_spec(FeedKind.REFUSED, name="two", host="127.0.0.3")
    with Farm([make_spec(), refusing]) as farm:
        with pytest.raises(httpx.ConnectError):
            client.get(farm.url(refusing))
        assert client.get(farm.url(farm.specs[0])).status_code == 200
        assert farm.expected_of(refusing) == {}


def test_a_truncated_answer_breaks_off_once(client: httpx.Client) -> None:
    with Farm([make_spec(FeedKind.TRUNCATED, failures=1)]) as farm:
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(farm.url(farm.specs[0]))
        assert dict(read_feed(client.get(farm.url(farm.specs[0])).content)) == farm.expected_articles()


@pytest.mark.parametrize("feed_format", [FeedFormat.RSS, FeedFormat.ATOM, FeedFormat.RDF])
def test_a_malformed_feed_is_not_well_formed_and_still_readable(client: httpx.Client, feed_format: FeedFormat) -> None:
    with Farm([make_spec(FeedKind.MALFORMED, format=feed_format, items=40)]) as farm:
        body = client.get(farm.url(farm.specs[0])).content
        assert feedparser.parse(body).bozo
        assert all(wrong in body for wrong in (b"Fish & chips", b"&nbsp;", b"<br>", b"Research & development"))
        assert dict(read_feed(body)) == farm.expected_articles()


def test_a_shared_article_is_expected_once(client: httpx.Client) -> None:
    specs = [
        make_spec(FeedKind.SHARED, name=name, host=host, shared_group="wire", items=5)
        for name, host in (("one", "127.0.0.2"), ("two", "127.0.0.3"))
    ]
    with Farm(specs) as farm:
        first, second = ([*read_feed(client.get(farm.url(spec)).content)] for spec in specs)
    assert len(set(first) & set(second)) == 1
    assert len(farm.expected_articles()) == len(first) + len(second) - 1 == 9


def test_a_slow_site_delays_its_answers_and_nobody_elses(client: httpx.Client) -> None:
    slow = make_spec(FeedKind.SLOW, name="two", host="127.0.0.3", delay_seconds=0.3)
    with Farm([make_spec(), slow]) as farm, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(client.get, farm.url(slow)) for _ in range(3)]
        quick = client.get(farm.url(farm.specs[0]))
        assert quick.is_success
        assert not any(answer.done() for answer in answers)
        assert all(answer.result().elapsed >= timedelta(seconds=0.3) for answer in answers)
        load = farm.host_loads()["127.0.0.3"]
        assert (load.peak_in_flight, load.in_flight) == (3, 0)
        assert farm.host_loads()[HOST].peak_in_flight == 1


def test_a_client_that_leaves_early_is_forgotten() -> None:
    with Farm([make_spec(FeedKind.SLOW, delay_seconds=30)]) as farm:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(farm.url(farm.specs[0]), timeout=0.1, trust_env=False)
        deadline = time.monotonic() + 30
        while (load := farm.host_loads()[HOST]).in_flight or not load.peak_in_flight:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_stop_leaves_no_thread_and_no_socket_and_a_farm_can_start_again() -> None:
    threads, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    farm = Farm([make_spec(), make_spec(FeedKind.REFUSED, name="two", host="127.0.0.3")])
    ports = set()
    for _ in range(2):
        with farm, socket.create_connection((HOST, farm.port)) as idle:
            assert farm.port < 32768
            assert httpx.get(farm.url(farm.specs[0]), trust_env=False).status_code == 200
            farm.stop()
            assert idle.recv(1) == b""
        ports.add(farm.port)
        assert threading.active_count() == threads
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, farm.port))
    farm.stop()
    assert len(ports) == 1
    assert farm.request_count() == 2


def test_a_port_that_is_taken_is_an_error_that_names_the_address() -> None:
    with Farm([make_spec()]) as farm:
        other = Farm([make_spec(), make_spec(name="two", host="127.0.0.3")], port=farm.port)
        with pytest.raises(OSError, match=rf"127\.0\.0\.2:{farm.port} can't be taken: Address already in use"):
            other.start()


def test_the_farm_of_the_benchmarks_does_what_it_is_told_and_ends_with_its_input(client: httpx.Client) -> None:
    command = [sys.executable, "-m", "benchmarks.feeds", "--feeds", "4", "--hosts", "2", "--entries", "3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def tell(order: str) -> dict[str, Any]:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{order}\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        urls = json.loads(process.stdout.readline())["urls"]
        before = client.get(urls[0])
        conditions = {"If-None-Match": before.headers["ETag"]}
        assert client.get(urls[0], headers=conditions).status_code == 304
        seen = {link for url in urls for link, _ in read_feed(client.get(url).content)}
        assert len(seen) == 12
        assert tell("publish 1") == tell("tick") == {}
        assert client.get(urls[0], headers=conditions).status_code == 200
        seen |= {link for url in urls for link, _ in read_feed(client.get(url).content)}
        assert len(seen) == 16
        assert set(tell("articles")["articles"]) == seen
        assert tell("status")["cpu_seconds"] > 0
        assert tell("dance") == {"error": "unknown command 'dance'"}
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_farm_of_names_listens_on_one_address_and_goes_by_the_host_field(client: httpx.Client) -> None:
    specs = named_specs(demo_specs(), "farm")
    assert {spec.host.partition(".")[2] for spec in specs} == {"farm"}
    with Farm(specs, address="127.0.0.1") as farm:

        def get(url: str) -> httpx.Response:
            """As from where the names lead to the farm's address."""
            asked = httpx.URL(url)
            return client.get(asked.copy_with(host="127.0.0.1"), headers={"Host": asked.netloc.decode()})

        plain = next(spec for spec in specs if spec.kind is FeedKind.PLAIN)
        assert dict(read_feed(get(farm.url(plain)).content)) == farm.expected_of(plain)
        moved = next(spec for spec in specs if spec.kind is FeedKind.MOVED)
        there = get(farm.url(moved)).headers["location"]
        assert there == f"http://{moved.moved_host}:{farm.port}{moved.moved_path}"
        assert dict(read_feed(get(there).content)) == farm.expected_of(moved)
        refused = next(spec for spec in specs if spec.kind is FeedKind.REFUSED)
        with pytest.raises(httpx.ConnectError):
            get(farm.url(refused))
        assert get(f"http://elsewhere.example:{farm.port}/").status_code == 400
        loads = farm.host_loads()
        assert loads[plain.host].peak_in_flight == 1
        assert {load.in_flight for load in loads.values()} == {0}
