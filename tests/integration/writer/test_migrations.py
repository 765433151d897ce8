from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from local.servers import Servers
from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.database.migrate import migrate, read_migrations
from shared.database.postgres import SCHEMA_VERSION
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.politeness import politeness_group
from shared.service import EXIT_MISCONFIGURED


def test_a_command_with_an_older_database_says_what_to_do(servers: Servers, tmp_path: Path) -> None:
    with (
        database_before(servers, tmp_path, 11) as url,  # feeds had no tags yet
        pytest.raises(ConfigurationError, match="older than this command: run `feedmill migrate`"),
        connect(url) as connection,
    ):
        add_feed(connection, NewFeed("http://news.example/feed"))


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


def test_a_role_that_may_read_feeds_may_read_what_they_list(servers: Servers, tmp_path: Path) -> None:
    role = f"role {uuid4().hex[:8]}"
    with database_before(servers, tmp_path, 10) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{role}"; GRANT SELECT, UPDATE ON feeds TO "{role}"'.encode())
        migrate(url)
        asked = "SELECT has_table_privilege(%s, 'feed_listings', privilege) FROM unnest(%s::text[]) AS privilege"
        assert connection.execute(asked, [role, ["SELECT", "UPDATE"]]).fetchall() == [(True,), (False,)]
        connection.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"'.encode())


def test_what_earlier_versions_knew_of_a_feeds_health_is_kept(servers: Servers, tmp_path: Path) -> None:
    with database_before(servers, tmp_path, 19) as url:
        with psycopg.connect(url) as connection:
            connection.execute(
                """
                INSERT INTO feeds (url, politeness_group, failures, last_success_at, enabled, disabled_reason) VALUES
                    ('http://fails/', 'a', 3, '2026-01-01 10:00:00+00', true, NULL),
                    ('http://moved/', 'b', 0, NULL, false, 'duplicate: moved for good to the URL of feed 1'),
                    ('http://unsure/', 'c', 0, '2026-01-01 10:00:00+00', true, NULL);
                INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome,
                    final, attempt, items_seen, items_new, wire_bytes, decoded_bytes)
                SELECT gen_random_uuid(), 1, at, at, 1, outcome = 'fetched', outcome, true, 0, 0, 0, 0, 0
                FROM (VALUES ('2026-01-01 09:00:00+00'::timestamptz, 'gave_up'), ('2026-01-01 10:00:00+00', 'fetched'),
                    ('2026-01-01 10:30:00+00', 'throttled'), ('2026-01-01 11:00:00+00', 'gave_up'),
                    ('2026-01-01 12:00:00+00', 'hard_error')) AS attempts (at, outcome);
                INSERT INTO pending_articles
                    (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, flags, created_at)
                VALUES ('m', 3, 'e', 'u', 't', 'b', 'full', 'h', '{date_ambiguous}', '2026-01-01 10:00:00+00')
                """
            )
        migrate(url)
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                """
                SELECT failing_since, duplicate_of, ambiguous_since, word
                FROM feeds JOIN feed_words ON feed_id = id ORDER BY id
                """
            ).fetchall()
    ten = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert rows[0] == (ten + timedelta(hours=1), None, None, "failing")
    assert rows[1] == (None, 1, None, "duplicate")
    assert rows[2][2:] == (ten, "dates_ambiguous")


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


@contextmanager
def refused_role(servers: Servers) -> Iterator[tuple[str, str, psycopg.Connection]]:
    """Yield a role without rights, the URL with which it uses a new database, and a superuser's connection to that."""
    role, name = f"role_{uuid4().hex[:8]}", f"test_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    url = servers.postgres.database_url(name)
    with psycopg.connect(url, autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'".encode())
        address = url.rpartition("@")[2]
        yield role, f"postgresql://{role}:secret@{address}", superuser
    servers.postgres.drop_database(name)
    with psycopg.connect(servers.postgres.database_url("postgres"), autocommit=True) as superuser:
        superuser.execute(f"DROP ROLE {role}".encode())


def refusal(url: str) -> tuple[str, str]:
    """Return what the role lacks, and the statements that give it."""
    with pytest.raises(ConfigurationError) as caught:
        migrate(url)
    said = str(caught.value)
    assert "\n" not in said
    assert "secret" not in said
    lack, _, remedy = said.partition(". A superuser, or the owner, can give it: ")
    return lack.partition(": it lacks ")[2], remedy


@pytest.mark.parametrize(
    "revoked", ["REVOKE CREATE ON SCHEMA public FROM PUBLIC", "REVOKE ALL ON SCHEMA public FROM PUBLIC"]
)
def test_without_rights_on_the_schema_the_grant_is_named_and_is_enough(servers: Servers, revoked: str) -> None:
    with refused_role(servers) as (role, url, superuser):
        superuser.execute(revoked.encode())
        lack, remedy = refusal(url)
        assert (lack, remedy) == ("CREATE on schema public", f"GRANT USAGE, CREATE ON SCHEMA public TO {role};")
        superuser.execute(remedy.encode())
        may_create = superuser.execute("SELECT has_database_privilege(%s, current_database(), 'CREATE')", [role])
        assert may_create.fetchone() == (False,), "CREATE on the database is not needed"
        assert len(migrate(url)) == SCHEMA_VERSION
        assert migrate(url) == []


def test_without_the_right_to_connect_the_servers_reason_is_one_line(servers: Servers) -> None:
    with refused_role(servers) as (_, url, superuser):
        superuser.execute(f"REVOKE CONNECT ON DATABASE {superuser.info.dbname} FROM PUBLIC".encode())
        with pytest.raises(DatabaseUnavailable) as caught:
            migrate(url)
        said = str(caught.value)
        assert ("CONNECT" in said, "\n" in said, "secret" in said) == (True, False, False)


def test_without_a_schema_the_one_that_is_missing_is_named(servers: Servers) -> None:
    with refused_role(servers) as (role, url, superuser):
        superuser.execute("DROP SCHEMA public")
        lack, remedy = refusal(url)
        assert lack == "a schema public to create tables in"
        assert remedy == f"CREATE SCHEMA public AUTHORIZATION {role};"
        superuser.execute(remedy.encode())
        assert len(migrate(url)) == SCHEMA_VERSION


@pytest.mark.parametrize("by_superuser", [True, False])
def test_tables_of_another_role_are_named_with_what_hands_them_over(
    servers: Servers, tmp_path: Path, by_superuser: bool
) -> None:
    with refused_role(servers) as (role, url, superuser):
        for migration in read_migrations()[:-1]:
            write(tmp_path, **{f"{migration.version:04d}_{migration.name}": migration.sql})
        superuser.execute(f"GRANT CREATE ON SCHEMA public TO {role}; CREATE TABLE of_others (id int)".encode())
        if by_superuser:
            migrate(superuser_url(superuser), tmp_path)
        else:
            owner = f"owner_{role}"
            superuser.execute(f"CREATE ROLE {owner}; GRANT CREATE ON SCHEMA public TO {owner}".encode())
            migrate(make_conninfo(superuser_url(superuser), options=f"-c role={owner}"), tmp_path)
        lack, remedy = refusal(url)
        assert lack.startswith("ownership of ROUTINE ack_articles(text[],text[]) and ")
        if by_superuser:
            assert f"ALTER TABLE schema_migrations OWNER TO {role};" in remedy
        else:
            assert remedy == f"GRANT {owner} TO {role};"
        superuser.execute(remedy.encode())
        assert len(migrate(url)) == 1
        if not by_superuser:
            superuser.execute(f"DROP OWNED BY {owner} CASCADE; DROP ROLE {owner}".encode())


def superuser_url(connection: psycopg.Connection) -> str:
    return make_conninfo(connection.info.dsn, password=connection.info.password)


def test_the_command_prints_one_line_for_a_missing_right_and_needs_no_broker(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_role(servers) as (role, url, superuser):
        superuser.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        monkeypatch.delenv("FEEDMILL_AMQP_URL", raising=False)
        monkeypatch.setenv("FEEDMILL_DATABASE_URL", url)
        failed = CliRunner().invoke(app, ["migrate"])
        assert failed.exit_code == EXIT_MISCONFIGURED
        assert failed.output.strip().splitlines()[-1].endswith(f"GRANT USAGE, CREATE ON SCHEMA public TO {role};")
        assert "Traceback" not in failed.output
        superuser.execute(f"GRANT CREATE, USAGE ON SCHEMA public TO {role}".encode())
        assert CliRunner().invoke(app, ["migrate"]).exit_code == 0
        monkeypatch.setenv("FEEDMILL_BROKER_USERS", "/nowhere")
        asked = CliRunner().invoke(app, ["migrate"])
        assert (asked.exit_code, "FEEDMILL_AMQP_URL is not set" in asked.output) == (EXIT_MISCONFIGURED, True)
