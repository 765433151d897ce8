"""Consumers over HTTP as whole processes: the API's and their own."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from feedmill_client import ApiAway, ApiRefused, Article, HttpPendingArticles
from tests.e2e.api_process import PATIENCE, ROOT, ApiProcess
from tests.integration.consumers.test_pending_articles import Connection, connect, dead, fill, keys, pending

pytestmark = pytest.mark.e2e

WORKER = """
import os, signal, sys
from datetime import timedelta
from feedmill_client import HttpPendingArticles

done = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
with HttpPendingArticles(sys.argv[1]) as pending:
    signal.signal(signal.SIGTERM, lambda *_: pending.stop())
    pending.run(
        lambda article: os.write(done, f"{article.md5} {article.content_hash}\\n".encode()),
        batch=25, lease=timedelta(seconds=3),
    )
"""


@pytest.fixture
def api(database_url: str, amqp_url: str) -> Iterator[ApiProcess]:
    with ApiProcess(database_url, amqp_url) as running:
        yield running


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        yield connection


def start_worker(api: ApiProcess, done: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WORKER, api.url, str(done)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def test_five_workers_lose_nothing_when_they_and_the_api_are_killed(
    api: ApiProcess, db: Connection, tmp_path: Path
) -> None:
    md5s = fill(db, 2000)
    done = tmp_path / "done"
    done.touch()
    shuffle = random.Random(17)
    workers = [start_worker(api, done) for _ in range(5)]
    killed = 0
    try:
        deadline = time.monotonic() + 2 * PATIENCE
        while (left := len(pending(db))) and time.monotonic() < deadline:
            if killed < 6 and left < 2000 - 250 * killed:
                killed += 1
                if killed % 3 == 0:
                    api.kill()
                    api.start()
                else:
                    victim = shuffle.randrange(5)
                    workers[victim].kill()
                    workers[victim].wait()
                    workers[victim] = start_worker(api, done)
            time.sleep(0.02)
    finally:
        for worker in workers:
            worker.terminate()
        codes = [worker.wait(PATIENCE) for worker in workers]
    times = Counter(line.split()[0] for line in done.read_text().splitlines())
    assert killed == 6
    assert (pending(db), dead(db)) == ([], [])
    assert set(times) == set(md5s)
    assert sum(times.values()) - 2000 <= 4 * 25 + 2 * 5 * 25  # only what was in the hands of those that were killed
    assert codes == [0] * 5


def test_sigterm_answers_a_claim_that_waits_and_ends_the_api(api: ApiProcess, db: Connection) -> None:
    answers: list[list[Article]] = []
    with HttpPendingArticles(api.url, wait_seconds=30) as consumer:
        thread = threading.Thread(target=lambda: answers.append(consumer._wait(1, timedelta(minutes=5))))
        thread.start()
        waits(db)
        begun = time.monotonic()
        assert api.stop() == 0
        thread.join(PATIENCE)
        assert time.monotonic() - begun < 25  # not the end of the wait
    assert answers == [[]]
    api.start()


def waits(db: Connection) -> None:
    deadline = time.monotonic() + PATIENCE
    while not db.execute(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN feedmill_pending'"
    ).rowcount:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_client_that_is_killed_while_it_waits_claims_nothing(api: ApiProcess, db: Connection, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.touch()
    worker = start_worker(api, done)
    waits(db)
    worker.kill()
    worker.wait()
    with HttpPendingArticles(api.url) as consumer:
        consumer.release([])  # the API has seen the end of the connection before this request
        md5s = fill(db, 2)
        deadline = time.monotonic() + PATIENCE
        while not (found := consumer.claim()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [article.md5 for article in found] == md5s
        assert {article.expiries for article in found} == {0}


def test_the_http_client_has_every_call_and_says_what_is_refused(api: ApiProcess, db: Connection) -> None:
    md5s = fill(db, 5)
    with HttpPendingArticles(api.url + "/") as consumer:
        articles = consumer.claim(4)
        assert [article.md5 for article in articles] == md5s[:4]
        in_table = db.execute("SELECT * FROM pending_articles ORDER BY created_at LIMIT 1").fetchall()[0]
        assert {name: getattr(articles[0], name) for name in Article.__slots__} == {
            name: in_table[name] for name in Article.__slots__
        }
        assert consumer.renew(articles) == articles
        assert consumer.ack(articles[:1]) == 1
        assert consumer.fail(articles[1:2], ValueError("a NUL \0 and \ud800"), timedelta(days=1)) == 1
        assert consumer.release(articles[2:3]) == 1
        assert consumer.renew(articles) == articles[3:]
        with pytest.raises(ApiRefused, match=r"claim: 422 .*max"):
            consumer.claim(5000)
        api.kill()
        with pytest.raises(consumer.AWAY):
            consumer.claim()
        threading.Timer(0.3, api.start).start()
        assert [article.md5 for article in consumer.patiently(consumer.claim)] == [md5s[2], md5s[4]]
    with pytest.raises(ValueError, match="api_url"):
        HttpPendingArticles("postgresql://x/")
    assert issubclass(ApiAway, consumer.AWAY)


def test_stop_ends_a_wait_at_once_and_releases_what_was_not_begun(api: ApiProcess, db: Connection) -> None:
    md5s = fill(db, 3)
    with HttpPendingArticles(api.url) as consumer:

        def handle(article: Article) -> None:
            consumer.stop()

        consumer.run(handle)
    assert pending(db) == md5s[1:]
    assert db.execute("SELECT count(*) AS n FROM pending_articles WHERE lease_id IS NULL").fetchall() == [{"n": 2}]
    db.execute("DELETE FROM pending_articles")
    with HttpPendingArticles(api.url, wait_seconds=30) as consumer:
        threading.Timer(0.5, consumer.stop).start()
        begun = time.monotonic()
        consumer.run(handle)
        assert time.monotonic() - begun < 25


def test_the_example_in_the_docs_drains_over_http_and_ends_on_sigterm(
    api: ApiProcess, db: Connection, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "how-to" / "consume.md").read_text(encoding="utf-8")
    _, code, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 20
    # As on a machine without psycopg.
    (tmp_path / "consumer.py").write_text("import sys\nsys.modules['psycopg'] = None\n" + code)
    environment = {**os.environ, "FEEDMILL_API_URL": api.url, "FEEDMILL_API_TOKEN": "", "PYTHONPATH": str(ROOT)}
    md5s = fill(db, 70)
    with subprocess.Popen(
        [sys.executable, "-u", "consumer.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + PATIENCE
        while pending(db) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [line.split()[0] for line in output.splitlines()] == md5s
    assert pending(db) == []


def test_the_requests_in_the_docs_work_as_written(
    api: ApiProcess, db: Connection, database_url: str, amqp_url: str
) -> None:
    page = (ROOT / "docs" / "how-to" / "consume.md").read_text(encoding="utf-8")
    section = page[page.index("## Over HTTP") :]
    commands = re.findall(r"^    (curl .*)$", section, re.MULTILINE)
    assert len(commands) == 2
    md5s = fill(db, 1)
    db.execute("UPDATE pending_articles SET md5 = '9e107d9d372bb6826bd81d3542a419d6'")
    create = [sys.executable, "-m", "services.cli", "token", "create", "indexer", "--scope", "consume"]
    servers = os.environ | {"FEEDMILL_DATABASE_URL": database_url, "FEEDMILL_AMQP_URL": amqp_url}
    token = subprocess.run(create, cwd=ROOT, env=servers, capture_output=True, text=True, check=True).stdout.strip()
    environment = {**os.environ, "FEEDMILL_API_URL": api.url, "FEEDMILL_API_TOKEN": token}
    outputs = [
        subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    assert '"articles":[{"md5":"9e107d9d372bb6826bd81d3542a419d6"' in outputs[0]
    assert outputs[1] == '{"acknowledged":1,"still_pending":[]}'
    assert keys(dead(db)) == pending(db) == [] != md5s
