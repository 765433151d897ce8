"""Alerts and dashboards agree with the code and the docs: metrics, labels, sections, panels."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from tests.monitoring.promql import metrics_in
from tests.monitoring.rules import ROOT, Rule, read_rules

DASHBOARDS = sorted((ROOT / "k8s" / "components" / "monitoring" / "dashboards").glob("*.json"))
RULES = read_rules()
ALERTS = [rule for rule in RULES if rule.kind == "alert"]

RUNBOOKS = "https://feedmill.example/docs/how-to/alerts.md"
"""Where the page of alerts is read: for Kubernetes an annotation of the Namespace."""

TARGET_LABELS = {"namespace", "job", "instance", "pod"}
"""The labels that Prometheus itself adds to a series."""

FOREIGN: dict[str, set[str]] = {
    # Prometheus
    "up": set(),
    "ALERTS": {"alertname", "alertstate"},
    # prometheus_client, of every process on Linux
    "process_cpu_seconds_total": set(),
    "process_open_fds": set(),
    "process_resident_memory_bytes": set(),
    "process_start_time_seconds": set(),
    # rabbitmq_prometheus 3.10 to 4.x: /metrics
    "rabbitmq_alarms_free_disk_space_watermark": set(),
    "rabbitmq_alarms_memory_used_watermark": set(),
    "rabbitmq_disk_space_available_bytes": set(),
    "rabbitmq_disk_space_available_limit_bytes": set(),
    "rabbitmq_identity_info": {"rabbitmq_cluster", "rabbitmq_node"},
    "rabbitmq_process_resident_memory_bytes": set(),
    "rabbitmq_resident_memory_limit_bytes": set(),
    # and /metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count (queue_info: 4.1 and newer)
    "rabbitmq_detailed_queue_info": {"vhost", "queue", "queue_type", "membership"},
    "rabbitmq_detailed_queue_consumers": {"vhost", "queue"},
    "rabbitmq_detailed_queue_messages": {"vhost", "queue"},
    "rabbitmq_detailed_queue_messages_ready": {"vhost", "queue"},
    "rabbitmq_detailed_queue_messages_unacked": {"vhost", "queue"},
    # CloudNativePG's default queries
    "cnpg_backends_total": set(),
    "cnpg_pg_replication_in_recovery": set(),
    "cnpg_pg_replication_is_wal_receiver_up": set(),
    "cnpg_pg_replication_lag": set(),
    "cnpg_pg_settings_setting": {"name"},
    "cnpg_pg_stat_archiver_last_archived_time": set(),
    "cnpg_pg_stat_archiver_last_failed_time": set(),
    # its Barman Cloud plugin
    "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp": set(),
    # kube-state-metrics and the kubelet
    "kube_cronjob_created": {"cronjob"},
    "kube_cronjob_status_last_successful_time": {"cronjob"},
    "kubelet_volume_stats_available_bytes": {"persistentvolumeclaim"},
    "kubelet_volume_stats_capacity_bytes": {"persistentvolumeclaim"},
}
"""Metrics of others, with their labels."""


def known_metrics() -> dict[str, set[str]]:
    """Return all known series with their labels: ours from the code, and those of other programs."""
    for service in ("scheduler", "fetcher", "enricher", "writer", "api"):
        importlib.import_module(f"services.{service}.__main__")
    known = dict(FOREIGN) | {rule.name: {"queue"} for rule in RULES if rule.kind == "record"}
    known["feedmill:installation"] = {"fetch_type"}
    known |= {"feedmill:broker_nodes": set(), "feedmill:database_instances": set()}
    for collector in REGISTRY._collector_to_names:
        if isinstance(collector, Counter | Gauge | Histogram) and collector._name.startswith("feedmill_"):
            labels = set(collector._labelnames)
            if isinstance(collector, Counter):
                known[f"{collector._name}_total"] = labels
            elif isinstance(collector, Histogram):
                known[f"{collector._name}_bucket"] = labels | {"le"}
                known[f"{collector._name}_count"] = known[f"{collector._name}_sum"] = labels
            else:
                known[collector._name] = labels
    return known


def read_dashboard(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return board


def panels_of(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions() -> list[tuple[str, str]]:
    """Return every PromQL expression with the place where it stands."""
    asked = [(rule.name, rule.expression) for rule in RULES]
    for path in DASHBOARDS:
        board = read_dashboard(path)
        for panel in panels_of(board):
            asked += [(f"{path.stem}: {panel['title']}", target["expr"]) for target in panel["targets"]]
        asked += [(f"{path.stem}: {note['name']}", note["expr"]) for note in board["annotations"]["list"]]
        for variable in board["templating"]["list"]:
            if found := re.fullmatch(r"label_values\((.+), \w+\)", str(variable["query"])):
                asked.append((f"{path.stem}: {variable['name']}", found.group(1)))
    return asked


def test_metrics_are_found_in_an_expression() -> None:
    found = metrics_in(
        'sum by (le, queue) (rate(a_total{queue=~"b_c", x!="y"}[5m])) > 1e9 and on (job) max by (z) (d:e:f) offset 5m'
        " or histogram_quantile(0.95, g_bucket) unless h{}"
    )
    assert found == {"a_total": {"queue", "x"}, "d:e:f": set(), "g_bucket": set(), "h": set()}


def test_everything_asked_for_exists() -> None:
    known = known_metrics()
    for where, expression in expressions():
        found = metrics_in(expression)
        assert found, where
        for metric, labels in found.items():
            assert metric in known, f"{where}: nobody has {metric}"
            assert labels <= known[metric] | TARGET_LABELS, f"{where}: {metric} has no {labels - known[metric]}"


def test_no_metric_of_others_is_listed_in_vain() -> None:
    assert FOREIGN.keys() <= {metric for _, expression in expressions() for metric in metrics_in(expression)}


def test_every_metric_of_ours_is_shown_on_a_dashboard() -> None:
    shown = {metric for where, expression in expressions() if ":" in where for metric in metrics_in(expression)}
    shown = {re.sub(r"_(bucket|count|sum)$", "", metric) for metric in shown}
    ours = {re.sub(r"_(bucket|count|sum)$", "", metric) for metric in known_metrics() if metric.startswith("feedmill_")}
    assert ours <= shown


@pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule.name)
def test_an_alert_says_what_matters(alert: Rule) -> None:
    assert alert.name.startswith("Feedmill")
    assert alert.field("severity") in {"critical", "warning"}
    assert all(alert.field(name) for name in ("summary", "description"))
    assert alert.field("runbook_url") == f"{RUNBOOKS}#{alert.name.lower()}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_looks_at_named_installations_only(rule: Rule) -> None:
    assert rule.expression.count("namespace=~'.*'") == 1, "k8s/components/monitoring puts its namespace there"
    assert rule.expression.count("'") == 2, "other strings are in double quotes"
    assert "on ()" not in rule.expression
    named = re.findall(r"feedmill:installation\{[^}]*\}", rule.expression)
    assert any("namespace=~'.*'" in one for one in named)
    for aggregated in re.findall(r"(?<![:\w])(?:sum|max|min|avg|count|group)\b\s*(by \([^)]*\))?", rule.expression):
        assert "namespace" in aggregated, rule.expression


def test_kubernetes_has_the_same_rules() -> None:
    script = ROOT / "scripts" / "prometheusrule.sh"
    written = subprocess.run([script], capture_output=True, text=True, check=True, timeout=60).stdout
    file = ROOT / "k8s" / "components" / "monitoring" / "prometheusrule.yaml"
    assert file.read_text(encoding="utf-8") == written, f"run {script.relative_to(ROOT)} > {file.relative_to(ROOT)}"
    assert written.count("- alert: ") == len(ALERTS)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_show_the_namespaces_that_are_chosen(path: Path) -> None:
    board = read_dashboard(path)
    asked = [target["expr"] for panel in panels_of(board) for target in panel["targets"]]
    for expression in asked + [note["expr"] for note in board["annotations"]["list"]]:
        assert 'namespace=~"$namespace"' in expression, expression
        for name, labels in re.findall(r"\b((?:feedmill|rabbitmq|ALERTS)\w*)(\{[^}]*\})?", expression):
            assert 'namespace=~"$namespace"' in labels, (name, expression)
        for queues in re.findall(r"(?:max|min) by \(queue\)", expression):
            raise AssertionError(f"{queues} takes queues of several namespaces for one: {expression}")


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_provisioned(path: Path) -> None:
    board = read_dashboard(path)
    assert board["uid"] == path.stem
    assert "id" not in board  # Grafana's own
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names[0] == "datasource"
    assert all(variable["description"] for variable in board["templating"]["list"])
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(board["panels"])))
    assert used == set(names), "variables are used, and those that are used exist"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_explain_themselves_and_leave_each_other_room(path: Path) -> None:
    board = read_dashboard(path)
    for panel in panels_of(board):
        where = panel["title"]
        assert len(panel["description"]) > 20, where
        assert panel["description"].endswith("."), where
        assert panel["datasource"]["uid"] == "${datasource}", where
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"]), where
        references = [target["refId"] for target in panel["targets"]]
        assert len(references) == len(set(references)), where
    for one, other in combinations(board["panels"], 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert apart or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (one["title"], other["title"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in board["panels"])


def test_dashboards_link_to_one_another() -> None:
    boards = {path.stem: read_dashboard(path) for path in DASHBOARDS}
    for name, board in boards.items():
        linked = {link["url"].removeprefix("/d/") for link in board["links"]}
        assert linked == boards.keys() - {name}


def test_compose_scrapes_what_the_rules_need() -> None:
    text = (ROOT / "monitoring" / "prometheus.yml").read_text(encoding="utf-8")
    for service in ("scheduler", "fetcher", "enricher", "writer", "api"):
        assert re.search(rf"dns_sd_configs:\n      - names: \[{service}\]\n        type: A\n        port: 8000\n", text)
    assert "metrics_path: /metrics/detailed" in text
    assert "family: [queue_coarse_metrics, queue_consumer_count]" in text
    assert len(re.findall(r"targets: \[rabbitmq:15692\]", text)) == 2
