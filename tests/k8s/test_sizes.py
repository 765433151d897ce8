"""How large an overlay is: its values are a row of docs/explanation/performance.md, and that row has what is needed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from services.writer.settings import WriterSettings
from tests.k8s.manifests import ROOT, Object, find, render
from tests.k8s.policies import quantity
from tests.k8s.test_layout import overlay_of_ones_own, size

PAGE = ROOT / "docs" / "explanation" / "performance.md"
POLLS, ARTICLES, BODIES = 26, 15, 0.4
"""A day of a feed: the page's first sentence."""
UNDRAINED_DAYS, ROOM = 7, 1.5
"""Days for which consumers may be away, and how much more than that a volume holds."""
ROWS = {"dev": "dev", "staging": "staging", "prod": "prod", "prod` with `large": "prod"}


@cache
def cells() -> dict[str, list[str]]:
    """Return the page's table rows by their first cell."""
    lines = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows}


def need(row: str, feeds: int) -> list[float]:
    """Return the numbers of a need at so many feeds."""
    column = [10_000, 50_000, 200_000].index(max(feeds, 10_000))
    (cell,) = (found[column] for first, found in cells().items() if first.startswith(row))
    return [float(number) for number in re.findall(r"[\d.]+", cell.replace(",", ""))]


def rendered(row: str, directory: Path) -> tuple[Object, ...]:
    overlay = f"{ROWS[row]}/queue-fetcher"
    if "large" in row:
        return overlay_of_ones_own(directory, overlay, "components: [K8S/components/large]\n")
    return render(overlay)


def cpu(one: Object, kind: str) -> str:
    return f"{quantity(one['resources'][kind]['cpu']):g}"


@pytest.mark.parametrize("row", ROWS)
def test_an_overlays_values_are_those_of_its_row(tmp_path: Path, row: str) -> None:
    objects = rendered(row, tmp_path)
    broker = find(objects, "RabbitmqCluster", "feedmill-broker")["spec"]
    database = find(objects, "Cluster", "feedmill-database")["spec"]
    _, of_broker, of_database, cores, poolers, *replicas = cells()[row]
    assert of_broker == f"{broker['resources']['limits']['memory']}, {broker['persistence']['storage']}"
    assert of_database == ", ".join(
        (database["resources"]["limits"]["memory"], database["storage"]["size"], database["walStorage"]["size"])
    )
    assert replicas == [size(f"feedmill-{name}", objects) for name in ("scheduler", "fetcher", "enricher", "writer")]
    assert cores == "; ".join(f"{cpu(one, 'requests')} to {cpu(one, 'limits')}" for one in (broker, database))
    assert poolers == str(find(objects, "Pooler", "feedmill-database-pooler-rw")["spec"]["instances"])
    for one in (broker, database):
        assert one["resources"]["requests"]["memory"] == one["resources"]["limits"]["memory"], "it is never evicted"
    memory, parameters = quantity(of_database.split(", ")[0]), database["postgresql"]["parameters"]
    assert quantity(parameters["shared_buffers"].removesuffix("B") + "i") == memory / 4
    assert quantity(parameters["effective_cache_size"].removesuffix("B") + "i") <= memory * 3 / 4


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_what_so_many_feeds_need(row: str) -> None:
    feeds, of_broker, of_database, _, _, _, fetchers, enrichers, writers = cells()[row]
    number = int(feeds.replace(",", ""))
    (broker_memory, broker_volume), (memory, volume, log) = (
        [quantity(value) / 1e9 for value in each.split(", ")] for each in (of_broker, of_database)
    )
    share = min(number / 10_000, 1)
    _, needed_of_broker, needed_of_database = need("memory:", number)
    assert broker_memory >= needed_of_broker
    assert memory >= needed_of_database * share
    assert broker_volume >= need("volume of the broker", number)[0]
    _, undrained = need("disk a day", number)
    (kept,) = need("database after retention", number)
    assert volume >= ROOM * (kept + UNDRAINED_DAYS * undrained) * share
    assert log >= need("write-ahead log", number)[0] * share + 9
    needed = [int(count) for count in need("fetchers, writers", number)[:2]] + [int(need("enrichers", number)[0])]
    for most, least in zip((fetchers, writers, enrichers), needed, strict=True):
        assert int(most.split()[-1]) >= least


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[\d.]+", text)]


@pytest.mark.parametrize(("column", "row"), list(enumerate(["staging", "prod", "prod` with `large"])))
def test_the_reasons_are_of_the_needs_and_values_of_both_tables(column: int, row: str) -> None:
    feeds, of_broker, of_database, cores, poolers, *_ = cells()[row]
    number = int(feeds.replace(",", ""))
    _, broker_memory, memory = need("memory:", number)
    volume = ROOM * (need("database after retention", number)[0] + UNDRAINED_DAYS * need("disk a day", number)[1])
    requested = [numbers(each)[0] for each in cores.split(";")]
    reasons = {
        "broker's memory": (broker_memory, numbers(of_broker)[0]),
        "broker's volume": (need("volume of the broker", number)[0], numbers(of_broker)[1]),
        "PostgreSQL's memory": (memory, numbers(of_database)[0]),
        "PostgreSQL's volume": (volume, numbers(of_database)[1]),
        "its log's volume": (need("write-ahead log", number)[0] + 9, numbers(of_database)[2]),
        "cores in all": (need("cores in use", number)[1], sum(requested)),
        "PgBouncer": (1, float(poolers)),
    }
    for first, (needed, value) in reasons.items():
        said, given, _ = cells()[first]
        assert numbers(said)[column] == pytest.approx(needed, rel=0.04), first
        assert numbers(given)[column] == value, first


@pytest.mark.parametrize("feeds", [10_000, 50_000, 200_000])
def test_the_needs_follow_from_what_one_thing_takes(feeds: int) -> None:
    """The page's lines under the tables are what `make bench` and a filled database showed."""
    settings, near = WriterSettings(), 0.15
    attempts, articles = POLLS * 330.0 * feeds / 1e9, ARTICLES * feeds / 1e9
    log_and_ledger, undrained = need("disk a day", feeds)
    assert log_and_ledger == pytest.approx(attempts + 423 * articles, rel=near)
    assert undrained == pytest.approx(1800 * articles, rel=near)
    wal = POLLS * feeds * ((1 - BODIES) * 4e3 + BODIES * 9e3) / 1e9 + 1800 * articles
    assert need("write-ahead log", feeds)[0] == pytest.approx(wal, rel=near)
    ledger = 423 * articles * settings.ledger_days
    log = min(POLLS * settings.log_days, settings.log_per_feed) * 330 * feeds / 1e9
    assert ledger <= need("database after retention", feeds)[0] <= ledger + log + 1.1e-5 * feeds
    mean, peak = need("polls a second", feeds)
    assert mean == pytest.approx(POLLS * feeds / 86400, rel=near)
    assert peak == pytest.approx(3 * mean, abs=1)
