"""The docs agree with the code: settings, queues, tables, metrics, commands, endpoints."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest
import typer.main
from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from pydantic_core import PydanticUndefined

from services.api.settings import ApiSettings
from services.cli.__main__ import app
from services.cli.settings import CliSettings
from services.enricher.settings import EnricherSettings
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.writer.settings import WriterSettings
from shared.broker.consumer import DRAIN_SECONDS
from shared.broker.shards import is_shard
from shared.database.migrate import read_migrations
from shared.settings import BrokerSettings, FeedmillSettings
from shared.wire.envelope import Message
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
SETTINGS: dict[str, type[FeedmillSettings]] = {
    "scheduler": SchedulerSettings,
    "fetcher": FetcherSettings,
    "enricher": EnricherSettings,
    "writer": WriterSettings,
    "api": ApiSettings,
    "feedmill": CliSettings,
}


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def table_rows(text: str) -> set[str]:
    """Return the table rows of a page, with white space folded."""
    return {re.sub(r"\s+", " ", line.strip()) for line in text.splitlines() if line.startswith("| ")}


def setting_rows() -> list[str]:
    """Return the rows that docs/reference/configuration.md must hold: variable, default, readers, description."""
    fields = {name for cls in SETTINGS.values() for name in cls.model_fields}
    rows = []
    for name in sorted(fields):
        readers = [reader for reader, cls in SETTINGS.items() if name in cls.model_fields]
        field = next(cls.model_fields[name] for cls in SETTINGS.values() if name in cls.model_fields)
        assert field.default is not PydanticUndefined
        default = f"`{field.default}`" if str(field.default) else "(none)"
        rows.append(f"| `FEEDMILL_{name.upper()}` | {default} | {', '.join(readers)} | {field.description} |")
    return rows


def test_every_setting_is_documented_as_it_is() -> None:
    documented = {row for row in table_rows(read("reference/configuration.md")) if row.startswith("| `FEEDMILL_")}
    assert documented == set(setting_rows()), "\n".join(["configuration.md should hold:", *setting_rows()])


def test_every_queue_is_documented() -> None:
    beginnings = ("| `fetcher", "| `enricher", "| `writer")
    rows = [row for row in table_rows(read("reference/queues.md")) if row.startswith(beginnings)]
    documented = {re.match(r"\| `([^`]+)`", row).group(1) for row in rows}  # type: ignore[union-attr]
    topology = BrokerSettings().topology()
    first, *later = topology.fetcher.queues
    last = later[-1]
    assert f"| `{first}` … `{last}` |" in read("reference/queues.md")
    assert documented == {queue.name for queue in topology.queues} - {q + f for q in later for f in ("", ".front")}


def test_every_table_is_documented() -> None:
    created = {name for migration in read_migrations() for name in re.findall(r"CREATE TABLE (\w+)", migration.sql)} | {
        "schema_migrations"
    }
    section = read("reference/tables.md").partition("## Tables")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == created


def test_every_function_is_documented_with_its_parameters() -> None:
    created = {
        re.sub(r"\s+", " ", f"{name}({parameters.strip()})")
        for migration in read_migrations()
        for name, parameters, returns in re.findall(
            r"^CREATE FUNCTION (\w+)\(([^)]*)\)\s+RETURNS (\w+)", migration.sql, re.MULTILINE
        )
        if returns != "trigger"
    }
    section = read("reference/tables.md").partition("## Functions")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)) == created


def test_every_function_says_what_it_does_and_names_its_schema() -> None:
    described: set[str] = set()
    for migration in read_migrations():
        described |= set(re.findall(r"^COMMENT ON FUNCTION (\w+)\(", migration.sql, re.MULTILINE))
        created = re.findall(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)\(", migration.sql, re.MULTILINE)
        assert set(created) <= described
        assert len(created) == migration.sql.count("SET search_path FROM CURRENT")


def test_every_metric_is_documented() -> None:
    for service in ("scheduler", "fetcher", "enricher", "writer", "api"):
        importlib.import_module(f"services.{service}.__main__")
    collectors = [c for c in REGISTRY._collector_to_names if isinstance(c, Counter | Gauge | Histogram)]
    names = {c._name + ("_total" if isinstance(c, Counter) else "") for c in collectors}
    section = read("reference/metrics.md").partition("## Metrics")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == {n for n in names if n.startswith("feedmill_")}


def test_every_outcome_is_documented() -> None:
    section = read("reference/queues.md").partition("## Outcomes")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == [outcome.value for outcome in Outcome]


def test_every_command_is_documented() -> None:
    group = typer.main.get_command(app)
    commands = set()
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        commands |= {f"feedmill {name} {sub}" for sub in inner or ()}
        if not inner or command.invoke_without_command:
            commands.add(f"feedmill {name}")
    section = read("reference/commands.md").partition("## Commands")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(feedmill [a-z]+(?: [a-z]+)?)", section, re.MULTILINE))
    assert documented == commands


def test_every_endpoint_is_documented() -> None:
    code = (ROOT / "shared" / "observability" / "telemetry.py").read_text(encoding="utf-8")
    endpoints = set(re.findall(r'^\s+"(/\w+)": ', code, re.MULTILINE))
    for path in ROOT.glob("services/*/__main__.py"):
        endpoints |= set(re.findall(r'add_page\("(/[\w/]+)"', path.read_text(encoding="utf-8")))
    section = read("reference/metrics.md").partition("## Endpoints")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(/[\w/]+)`", section, re.MULTILINE)) == endpoints


@pytest.mark.parametrize("message", [FetchFeed, FeedFetched])
def test_every_field_of_a_message_is_documented(message: type[Message]) -> None:
    section = read("reference/queues.md").partition(f"\n### `{message.KIND}`")[2].partition("\n##")[0]
    names = [field.alias or name for name, field in message.model_fields.items()]
    missing = [name for name in names if f"`{name}`" not in section]
    assert missing == []


def section_of(page: str, title: str) -> str:
    return read(page).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_operations_tell_of_every_queue() -> None:
    names = re.findall(r"`([\w.-]+)`", section_of("how-to/operate.md", "Backlog"))
    shards = {name for name in names if is_shard(name)}
    topology = BrokerSettings().topology()
    assert shards == {topology.fetcher.queues[0], topology.fetcher.queues[-1]}
    many = {name + front for name in topology.fetcher.queues for front in ("", ".front")}
    assert {queue.name for queue in topology.queues} - many <= set(names)
    assert "fetcher.07.front" in names


def test_operations_tell_why_messages_die() -> None:
    code = (ROOT / "shared" / "errors.py").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in table_rows(section_of("how-to/operate.md", "Dead letters"))]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {*re.findall(r'DeadLetter\("(\w+)"', code), "delivery_limit"}


def test_operations_name_the_limits_that_hold() -> None:
    section = section_of("how-to/operate.md", "Limits")
    for name, default in (
        ("FEEDMILL_FETCHER_HIGH_WATER", SchedulerSettings().fetcher_high_water),
        ("FEEDMILL_WRITER_HIGH_WATER", FetcherSettings().writer_high_water),
        ("FEEDMILL_GROUP_JOBS", SchedulerSettings().group_jobs),
    ):
        assert f"| `{name}` {default:,}" in section
    policies = (ROOT / "k8s" / "base" / "broker.yaml").read_text(encoding="utf-8")
    for policy in ("jobs", "results"):
        (pattern,) = re.findall(rf"operator\.{policy}\.queue_pattern = (\S+)", policies)
        (most,) = re.findall(rf"operator\.{policy}\.max_length_bytes = (\d+)", policies)
        assert f"{policy} '{pattern}' '{{\"max-length-bytes\": {most}}}'" in section


def test_units_leave_services_the_time_that_they_need_to_stop() -> None:
    service, fetcher = map(int, re.findall(r"^TimeoutStopSec=(\d+)$", read("how-to/own-servers.md"), re.MULTILINE))
    assert service > DRAIN_SECONDS
    assert fetcher > FetcherSettings().longest_fetch_seconds() + DRAIN_SECONDS


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                file, _, anchor = target.partition("#")
                linked = page.parent / file if file else page
                assert linked.exists(), f"{page.name} links to {target}"
                assert not anchor or anchor in anchors_of(linked), f"{page.name} links to {target}"


def test_the_index_lists_every_page() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}
    assert (
        set(re.findall(r"\]\(([^)#:]+\.md)\)", read("README.md"))) - {"../CONTRIBUTING.md", "../CHANGELOG.md"} == pages
    )


def test_every_page_begins_with_its_question() -> None:
    for page in DOCS.rglob("*.md"):
        first, *rest = [line for line in page.read_text(encoding="utf-8").splitlines() if line]
        assert first.startswith("# "), page.name
        assert "?" in first + rest[0], f"{page.name} does not say which question it answers"


def test_contributing_shows_the_law_of_imports_and_every_folder() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    law = next(contract["layers"] for contract in contracts if "services.cli" in contract.get("layers", ()))
    shown = re.search(r"^    services\.cli\n(?:    .*\n)+", page, re.MULTILINE).group(0)  # type: ignore[union-attr]
    assert [line.split() for line in shown.splitlines()] == [layer.split(" | ") for layer in law]
    folders = {path.parent.name for path in ROOT.glob("services/*/__init__.py")}
    folders |= {
        path.parent.name for path in [*ROOT.glob("services/fetcher/*/__init__.py"), *ROOT.glob("shared/*/__init__.py")]
    }
    assert [name for name in sorted(folders) if f"{name}/" not in page] == []


def test_the_project_stands_on_its_own() -> None:
    """No page and no program refers to files beside the project, except CI and the corpus tests."""
    allowed = {ROOT / ".ci" / "run", Path(__file__)}
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("s*/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]:
        if path not in allowed:
            assert "../shared" not in path.read_text(encoding="utf-8"), path


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
    assert set(re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE)) == phony
