"""What operators load into Prometheus and Grafana names only metrics that exist, and the documents name them all."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from mirror.jobcontroller.metrics import JobMetrics
from mirror.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[2]
HERE = ROOT / "deploy/observability"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
NAME = re.compile(r"\b(?:jobmirror|job_controller|ttl_after|workqueue|leader_election|process)_[a-z_0-9]+")
ROW = re.compile(r"^\| `([a-z_0-9]+)` \| (\w+) \|(.*?)\| .+ \|$", re.MULTILINE)


def registry() -> CollectorRegistry:
    """All that a manager with the Job controller offers."""
    metrics = Metrics()
    JobMetrics(metrics)
    return metrics.registry


def offered() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Every metric as documents name it: its type and its labels."""
    found = {}
    for collector in registry()._collector_to_names:
        name, kind = getattr(collector, "_name", ""), getattr(collector, "_type", "")
        if name:
            found[name + "_total" * (kind == "counter")] = (kind, tuple(getattr(collector, "_labelnames", ())))
    return found


def sampled() -> set[str]:
    """Every name that an expression may use."""
    process = {family.name for family in registry().collect() if family.name.startswith("process_")}
    named = {name.removesuffix("_total") + suffix for name, (kind, _) in offered().items() for suffix in SUFFIXES[kind]}
    return named | process | {f"{name}_total" for name in process}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((HERE / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels(dashboard: Any) -> Iterator[dict[str, Any]]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def generator() -> Any:
    """The program that writes the dashboard; it finds its other file as a script does."""
    if str(HERE) not in sys.path:
        sys.path.append(str(HERE))
    spec = importlib.util.spec_from_file_location("generate_dashboard", HERE / "generate_dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def promtool(required_program: Callable[..., Path]) -> Path:
    """Prometheus' own judge."""
    return required_program("promtool")


def test_the_table_of_metrics_is_the_registry() -> None:
    """docs/metrics.md: name, type and labels of each, none more and none less."""
    text = (ROOT / "docs/metrics.md").read_text()
    documented = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(text)}
    assert documented == offered()


def test_alerts_and_dashboard_name_only_metrics_that_exist() -> None:
    """A rule about a metric that was renamed would stay silent for ever."""
    texts = [rule["expr"] for rule in rules()]
    texts += [target["expr"] for panel in panels(generator().dashboard()) for target in panel.get("targets", ())]
    assert {name for text in texts for name in NAME.findall(text)} - sampled() == set()


def test_every_alert_says_what_and_how_bad_and_where_to_read_on() -> None:
    """The runbook has a section of each alert's name; names are unique, or one would hide another."""
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"


def test_the_runbook_has_a_section_for_each_alert() -> None:
    """Under its name, so that the link of an alert leads there; and none for alerts that are no more."""
    headings = re.findall(
        r"^#{2,3} ((?:Mirror|JobController)\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE
    )
    assert sorted(headings) == sorted(rule["alert"] for rule in rules())


def test_every_alert_is_shown_firing() -> None:
    """By a promtool test; that nothing else fires with it is part of most."""
    text = "".join(path.read_text() for path in sorted((HERE / "tests").glob("*.yaml")))
    fires = set(re.findall(r'labels: ALERTS\{alertname="(\w+)"', text))
    fires |= set(re.findall(r"alertname: (\w+)\n\s+eval_time: \S+\n\s+exp_alerts:", text))
    assert fires == {rule["alert"] for rule in rules()}


def test_prometheus_accepts_the_rules(promtool: Path) -> None:
    """As promtool reads them, the way Prometheus does."""
    checked = subprocess.run(
        [promtool, "check", "rules", HERE / "alerts.yaml"], capture_output=True, text=True, timeout=280, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rules_fire_when_they_should_and_only_then(promtool: Path) -> None:
    """deploy/observability/tests, played by promtool."""
    files = sorted((HERE / "tests").glob("*.yaml"))
    assert files
    roomy = os.environ | {"GOGC": "400"}  # 110 MB instead of a third of the CPU
    played = subprocess.run(
        [promtool, "test", "rules", *files], capture_output=True, text=True, timeout=280, check=False, env=roomy
    )
    assert played.returncode == 0, played.stdout + played.stderr


def test_the_dashboard_is_the_one_that_is_generated() -> None:
    """Nobody edits the file by hand."""
    assert (HERE / "dashboard.json").read_text() == generator().text()


def test_grafana_can_place_every_panel() -> None:
    """Numbers are unique, panels do not overlap, and each asks the data source that the user chose."""
    found = json.loads((HERE / "dashboard.json").read_text())
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", found["uid"])
    every = list(panels(found))
    assert len({panel["id"] for panel in every}) == len(every)
    for one in (found, *(panel for panel in every if panel.get("panels"))):
        taken = [cell for panel in one["panels"] for cell in cells(panel["gridPos"])]
        assert len(set(taken)) == len(taken)
    for panel in every:
        if panel["type"] != "row":
            assert panel["targets"]
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


@pytest.mark.parametrize("panel", list(panels(generator().dashboard())), ids=lambda panel: panel["title"])
def test_every_panel_says_what_it_shows_of_the_chosen_workers(panel: dict[str, Any]) -> None:
    """Two rows of text at most; what a worker or a cluster labels follows the variable, by the registry's labels."""
    if panel["type"] == "row":
        return
    assert 20 <= len(panel["description"]) <= 120
    assert panel["description"].endswith(".")
    for target in panel["targets"]:
        for name, selector in re.findall(r"\b(jobmirror_[a-z_]+|job_controller_[a-z_]+)\{([^}]*)\}", target["expr"]):
            labels = labels_of(name)
            assert ('worker=~"$worker"' in selector) == ("worker" in labels), target["expr"]
            assert ('cluster=~"$worker|management"' in selector) == ("cluster" in labels), target["expr"]
            assert selector.startswith('job=~"$job"')


def test_the_dashboards_variables_offer_what_there_is() -> None:
    """Data source, installation, and the workers of the chosen installations; all of them at first."""
    variables = generator().dashboard()["templating"]["list"]
    assert [one["name"] for one in variables] == ["datasource", "job", "worker"]
    assert variables[2]["definition"] == 'label_values(jobmirror_worker_up{job=~"$job"}, worker)'
    assert all(one["multi"] and one["includeAll"] and one["allValue"] == ".*" for one in variables[1:])


def labels_of(sample: str) -> tuple[str, ...]:
    """The labels of the metric that this sample belongs to."""
    for name, (kind, labels) in offered().items():
        if sample in {name.removesuffix("_total") + suffix for suffix in SUFFIXES[kind]}:
            return labels
    raise AssertionError(sample)


def cells(place: dict[str, int]) -> list[tuple[int, int]]:
    assert place["x"] + place["w"] <= 24
    return [
        (x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])
    ]
