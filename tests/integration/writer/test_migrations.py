from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from typer.testing import CliRunner

from local.servers import Servers
from services.cli.__main__ import app
from shared.database.migrate import migrate, read_migrations
from shared.database.postgres import SCHEMA_VERSION
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.politeness import politeness_group
from shared.service import EXIT_MISCONFIGURED


def test_the_code_asks_for_the_newest_migration() -> None:
    assert read_migrations()[-1].version == SCHEMA_VERSION


def test_a_migrated_database_has_nothing_left_to_do(database_url: str) -> None:
    assert migrate(database_url) == []


def write(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name}.sql").write_text(text)
    return directory


def tables(database_url: str) -> set[str]:
    with psycopg.connect(database_url) as connection:
        return {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_many_at_once_apply_each_migration_once(database_url: str, tmp_path: Path) -> None:
    latest = SCHEMA_VERSION
    for number, migration in enumerate(read_migrations(), 1):
        write(tmp_path, **{f"{number:04d}_{migration.name}": migration.sql})
    write(tmp_path, **{f"{latest + 1:04d}_more": "CREATE TABLE more (id int); SELECT pg_sleep(0.1)"})
    with ThreadPoolExecutor(6) as pool:
        applied = list(pool.map(lambda _: migrate(database_url, tmp_path), range(6)))
    assert sorted(len(migrations) for migrations in applied) == [0, 0, 0, 0, 0, 1]


def test_a_migration_that_fails_leaves_nothing_and_says_which(database_url: str, tmp_path: Path) -> None:
    for number, migration in enumerate(read_migrations(), 1):
        write(tmp_path, **{f"{number:04d}_{migration.name}": migration.sql})
    write(tmp_path, **{f"{SCHEMA_VERSION + 1:04d}_broken": "CREATE TABLE half (id int); SELECT nonsense"})
    with pytest.raises(ConfigurationError, match="_broken failed and was rolled back"):
        migrate(database_url, tmp_path)
    assert "half" not in tables(database_url)


def test_an_applied_migration_must_not_change(database_url: str, tmp_path: Path) -> None:
    for number, migration in enumerate(read_migrations(), 1):
        write(tmp_path, **{f"{number:04d}_{migration.name}": migration.sql + "\n-- changed"})
    with pytest.raises(ConfigurationError, match="was changed after it had been applied"):
        migrate(database_url, tmp_path)


@contextmanager
def database_before(servers: Servers, directory: Path, version: int) -> Iterator[str]:
    """Yield the URL of a database that was migrated to the version before this one."""
    name = f"test_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    url = servers.postgres.database_url(name)
    for migration in read_migrations()[: version - 1]:
        write(directory, **{f"{migration.version:04d}_{migration.name}": migration.sql})
    migrate(url, directory)
    yield url
    servers.postgres.drop_database(name)


def test_rows_that_no_service_can_count_with_are_put_right(servers: Servers, tmp_path: Path) -> None:
    with database_before(servers, tmp_path, 6) as url:
        with psycopg.connect(url) as connection:
            connection.execute(
                """
                INSERT INTO feeds
                    (url, politeness_group, next_fetch_at, claim_expires_at, interval_seconds, longest_seconds)
                VALUES ('http://a/', 'a', '-infinity', 'infinity', 'NaN', NULL),
                    ('http://b/', 'b', now(), NULL, 60, 'Infinity')
                """
            )
        migrate(url)
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT next_fetch_at, interval_seconds, longest_seconds FROM feeds ORDER BY id")
            assert [row[1:] for row in rows] == [(31622400, None), (60, 31622400)]


def test_stored_groups_are_spelled_as_the_registry_spells_them_now(servers: Servers, tmp_path: Path) -> None:
    stored = {
        "http://news.example/": "news.example",
        "http://news.example\u3002/": "news.example.",
        "http://news.example\u3002:8080/": "news.example.:8080",
        "http://[2001:DB8:0:0::1]:8080/": "[2001:db8:0:0::1]:8080",
        "http://[::ffff:192.0.2.1]/": "[::ffff:192.0.2.1]",
        "http://[::FFFF:C000:0201]:81/": "[::ffff:c000:0201]:81",
        "http://[::1]/": "[::1]",
    }
    with database_before(servers, tmp_path, 9) as url:
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO feeds (url, politeness_group) VALUES (%s, %s)", list(stored.items()))
            cursor.execute("INSERT INTO feeds (url, politeness_group) VALUES ('odd', '[odd'), ('hub', 'hub/a.')")
        migrate(url)
        with psycopg.connect(url) as connection:
            rows: dict[str, str] = dict(connection.execute("SELECT url, politeness_group FROM feeds").fetchall())
    assert (rows.pop("odd"), rows.pop("hub")) == ("[odd", "hub/a.")
    assert rows == {address: politeness_group(address) for address in stored}


@pytest.mark.parametrize("names", [("0001_a", "0003_c"), ("0002_b",), ("first",)])
def test_gaps_and_odd_names_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError):
        read_migrations(write(tmp_path, **dict.fromkeys(names, "SELECT 1")))


def test_a_server_that_is_away_is_unavailable_and_shows_no_password() -> None:
    with pytest.raises(DatabaseUnavailable) as error:
        migrate("postgresql://user:secret@127.0.0.1:1/x")
    assert "secret" not in str(error.value)


def test_a_connection_that_is_lost_in_the_middle_is_no_fault_of_the_migration(
    database_url: str, tmp_path: Path
) -> None:
    lost = "SELECT pg_terminate_backend(pg_backend_pid())"
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM schema_migrations")
    with pytest.raises(DatabaseUnavailable):
        migrate(database_url, write(tmp_path, **{"0001_lost": lost}))


def test_migrate_says_by_its_exit_code_that_another_try_is_no_use(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_AMQP_URL", "amqp://127.0.0.1:1/")
    assert CliRunner().invoke(app, ["migrate"]).exit_code == 0
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'another' WHERE version = 2")
    failed = CliRunner().invoke(app, ["migrate"])
    assert failed.exit_code == EXIT_MISCONFIGURED
