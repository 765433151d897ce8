"""Each environment brings alerts that look at its own namespace and know how it fetches."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path

import pytest

from tests.k8s.manifests import ROOT, Object, build, find, of_kind, render
from tests.k8s.policies import namespace_is_one
from tests.monitoring.cases import CASES, within
from tests.monitoring.promtool import Expected, check, needs_promtool
from tests.monitoring.rules import ALERTS, INSTALLATIONS, read_rules

SERVERS = (("RabbitmqCluster", "feedmill-broker"), ("Cluster", "feedmill-database"))
WATCHED = [f"{environment}/{kind}-fetcher" for environment in ("staging", "prod") for kind in ("queue", "batch")]


def rules_of(overlay: str) -> list[Object]:
    """Return the rules of an overlay's PrometheusRule, the installation's first."""
    spec = find(render(overlay), "PrometheusRule", "feedmill")["spec"]
    return [rule for group in spec["groups"] for rule in group["rules"]]


def namespace_of(overlay: str) -> Object:
    (found,) = (one for one in render(overlay) if one["kind"] == "Namespace")
    return found


@pytest.mark.parametrize("overlay", WATCHED)
def test_the_rules_are_those_of_monitoring_for_this_namespace(overlay: str) -> None:
    namespace = namespace_of(overlay)["metadata"]["name"]
    said = read_rules(INSTALLATIONS)
    rules = rules_of(overlay)
    installation, *counted = rules[: len(said)]
    assert installation["labels"] == {"fetch_type": overlay.partition("/")[2]}
    assert [rule["record"] for rule in (installation, *counted)] == [rule.name for rule in said]
    for rule, one in zip((installation, *counted), said, strict=True):
        assert rule["expr"].replace("3 * ", "1 * ") == one.expression.replace("''", f"'{namespace}'")
    broker, database = (find(render(overlay), *one)["spec"] for one in SERVERS)
    numbers = [int(rule["expr"].partition(" ")[0]) for rule in counted]
    assert numbers == [broker["replicas"], database["instances"]] == [3, 3]
    assert [rule["expr"].strip() for rule in rules[len(said) :]] == [
        rule.expression.replace("'.*'", f"'{namespace}'") for rule in read_rules(ALERTS)
    ]


@pytest.mark.parametrize("overlay", WATCHED)
def test_runbooks_are_where_the_namespace_says(overlay: str) -> None:
    base = namespace_of(overlay)["metadata"]["annotations"]["feedmill.dev/runbooks"]
    alerts = [rule for rule in rules_of(overlay) if "alert" in rule]
    assert alerts
    for rule in alerts:
        assert rule["annotations"]["runbook_url"] == f"{base}#{rule['alert'].lower()}"


@pytest.mark.parametrize("kind", ["queue-fetcher", "batch-fetcher"])
def test_an_overlay_that_renames_the_namespace_repeats_the_replacements_of_the_page(kind: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^    (namespace: paris\n(?:    .+\n)+)", page, re.MULTILINE)
    there = Path(os.path.relpath(ROOT, tmp_path.resolve()))
    text = textwrap.dedent("    " + said).replace("../feedmill", str(there)).replace("queue-fetcher", kind)
    (tmp_path / "kustomization.yaml").write_text(text)
    objects = build(tmp_path)
    (settings,) = (one for one in of_kind(objects, "ConfigMap") if "FEEDMILL_API_HOSTS" in one["data"])
    assert "feedmill-api.paris.svc" in settings["data"]["FEEDMILL_API_HOSTS"].split(",")
    (ingress,) = of_kind(objects, "Ingress")
    assert ingress["spec"]["rules"][0]["host"] == settings["data"]["FEEDMILL_API_HOSTS"].partition(",")[0]
    assert list(namespace_is_one(objects)) == []
    assert len(of_kind(objects, "ScaledObject")) == (3 if kind == "queue-fetcher" else 0)
    rules = find(objects, "PrometheusRule", "feedmill")
    assert rules["metadata"]["namespace"] == "paris"
    for rule in (rule for group in rules["spec"]["groups"] for rule in group["rules"]):
        assert re.findall(r"'(.*?)'", rule["expr"]) == ["paris"]


def rule_files(directory: Path, *overlays: str) -> list[Path]:
    """Write the rules of overlays as files of Prometheus."""
    files = []
    for overlay in overlays:
        files.append(directory / f"{overlay.replace('/', '-')}.json")
        spec = find(render(overlay), "PrometheusRule", "feedmill")["spec"]
        files[-1].write_text(json.dumps(spec), encoding="utf-8")
    return files


@needs_promtool
@pytest.mark.parametrize(("ill", "well"), [("feedmill", "feedmill-staging"), ("feedmill-staging", "feedmill")])
@pytest.mark.parametrize("name", ["FeedmillAbsent", "FeedmillFetcherDown", "FeedmillBrokerUnseen"])
def test_prod_and_staging_under_one_prometheus_alarm_for_themselves(
    name: str, ill: str, well: str, tmp_path: Path
) -> None:
    case = CASES[name]
    series = within(ill, {**case.also, **case.fires}) | within(well, {**case.also, **case.silent})
    both = rule_files(tmp_path, "staging/queue-fetcher", "prod/queue-fetcher")
    check(both, series, [Expected(name, case.at, [ill]), Expected("FeedmillUnwatched", case.at, [])], tmp_path)


@needs_promtool
def test_the_rules_of_one_namespace_say_nothing_of_another(tmp_path: Path) -> None:
    case = CASES["FeedmillFetcherDown"]
    series = within("feedmill", {**case.also, **case.fires})
    expected = [
        Expected("FeedmillAbsent", case.at, ["feedmill-staging"]),
        Expected(".+", case.at, [], among="feedmill"),
    ]
    check(rule_files(tmp_path, "staging/queue-fetcher"), series, expected, tmp_path)
