"""A real Prometheus beside a real manager: the shipped rules and the dashboard work on what is really scraped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, job, runs, until
from e2e.manager import ManagerProcess
from e2e.prometheus import Prometheus
from e2e.proxy import Proxy

DASHBOARD = Path(__file__).parents[1] / "deploy/observability/dashboard.json"
INSTALLATION = "the manager"
NOTHING_TO_SHOW = {"Failed requests", "Retries", "Queue depth", "Sweeps", "Jobs by reason", "Moves"}
"""Panels that may be empty where all is well."""


@pytest.fixture(autouse=True)
def _needs_prometheus(required_program: Callable[..., Path]) -> None:
    required_program("prometheus")


async def test_alerts_follow_what_happens_to_a_manager(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """All rules evaluate; nothing fires while all is well; a worker that is lost is told, and so is a manager."""
    async with Proxy.before(east) as proxy, ManagerProcess.start(management) as manager:
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        async with Prometheus.start({INSTALLATION: manager.address}) as prometheus:
            await scene.create(job("ends", manager.managed_by), job("runs", manager.managed_by, run_for="never"))
            await scene.source_until("ends", is_complete)
            await scene.source_until("runs", runs())
            await until(prometheus.targets, lambda found: [target["health"] for target in found] == ["up"])
            rules = await until(prometheus.rules, lambda found: found and all(r["health"] != "unknown" for r in found))
            assert [rule["lastError"] for rule in rules if rule["health"] != "ok"] == []
            await until(prometheus.firing, lambda found: not found)
            await assert_dashboard_shows_something(prometheus)

            proxy.refuse()
            lost = (await until(prometheus.firing, lambda found: "MirrorWorkerLost" in found))["MirrorWorkerLost"]
            assert lost["labels"] == {
                "alertname": "MirrorWorkerLost",
                "job": INSTALLATION,
                "severity": "critical",
                "worker": "east",
            }
            assert lost["annotations"]["summary"] == "Worker east is unreachable"
            await proxy.resume()
            await until(prometheus.firing, lambda found: "MirrorWorkerLost" not in found)

            await manager.kill()
            await until(prometheus.firing, lambda found: "MirrorManagerDown" in found)


async def assert_dashboard_shows_something(prometheus: Prometheus) -> None:
    """Every query is understood, and those of the first rows have an answer for a manager with a Job."""
    await until(lambda: prometheus.query("count_over_time(jobmirror_leader[1m]) > 2"))  # rates need some scrapes
    await until(lambda: empty_panels(prometheus), lambda empty: empty <= NOTHING_TO_SHOW)


async def empty_panels(prometheus: Prometheus) -> set[str]:
    """Those of the first rows that have no answer."""
    dashboard = json.loads(DASHBOARD.read_text())
    empty = set()
    for panel in dashboard["panels"]:
        for one in (panel, *panel.get("panels", ())):
            for target in one.get("targets", ()):
                expression = re.sub(r"\$(job|worker)\b", ".*", target["expr"].replace("$__rate_interval", "30s"))
                assert not re.search(r"\$\w", expression)
                if not await prometheus.query(expression) and one is panel:
                    empty.add(one["title"])
    return empty
