"""Writes ``dashboard.json`` beside it: ``python deploy/observability/generate_dashboard.py``.

A row is a line here, a panel is a call; what all panels have in common stands once. Tests compare the file with what
this prints, and every metric with the registry.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TARGET = Path(__file__).with_name("dashboard.json")
UID = "jobmirror-overview"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SELECTED = 'job=~"$job"'
"""Every query names the installation; the rest of a selector follows."""
LEADS = 'and on (job, instance) jobmirror_leader{job=~"$job"} == 1'
WIDTH, HEIGHT = 24, 7


def _targets(queries: tuple[tuple[str, str], ...]) -> list[Json]:
    return [
        {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "legendFormat": legend or "__auto"}
        for number, (expr, legend) in enumerate(queries)
    ]


def timeseries(title: str, unit: str, *queries: tuple[str, str], about: str = "", stacked: bool = False) -> Json:
    """Lines over time; a query is an expression and its legend."""
    custom: Json = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
    if stacked:
        custom |= {"stacking": {"mode": "normal", "group": "A"}, "fillOpacity": 40}
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": _targets(queries),
    }


def stat(title: str, unit: str, query: str, *, red_from: float | None = None, red_below: float | None = None) -> Json:
    """One number; red from a value on, or below one."""
    steps: list[Json] = [{"color": "green", "value": None}]
    if red_from is not None:
        steps.append({"color": "red", "value": red_from})
    if red_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": red_below}]
    return {
        "type": "stat",
        "title": title,
        "description": "",
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"},
        "targets": _targets(((query, ""),)),
    }


def quantiles(metric: str, by: str, legend: str) -> tuple[tuple[str, str], ...]:
    """The median and the 99th percentile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return tuple(
        (
            f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{SELECTED}}}[$__rate_interval])))",
            f"{name} {legend}".strip(),
        )
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    )


def rate(metric: str, by: str, more: str = "") -> str:
    """Per second, summed up."""
    return f"sum by ({by}) (rate({metric}{{{SELECTED}{more}}}[$__rate_interval]))"


ROWS: dict[str, list[Json]] = {
    "Overview": [
        stat("Leaders", "none", f"sum(jobmirror_leader{{{SELECTED}}})", red_below=1),
        stat(
            "Unreachable workers",
            "none",
            f"count(jobmirror_worker_up{{{SELECTED}}} == 0 {LEADS}) or vector(0)",
            red_from=1,
        ),
        stat(
            "Active Jobs",
            "none",
            f'sum(jobmirror_mirrored_jobs{{{SELECTED}, state!="finished"}} {LEADS}) or vector(0)',
        ),
        stat("Waiting Jobs", "none", f"sum(jobmirror_waiting_jobs{{{SELECTED}}})"),
        stat("Longest wait", "s", f"max(jobmirror_waiting_oldest_seconds{{{SELECTED}}})", red_from=1800),
        stat(
            "Status lag, p99",
            "s",
            quantiles("jobmirror_status_lag_seconds", "", "")[1][0],
            red_from=5,
        ),
    ],
    "Workers": [
        timeseries("Workers ready", "none", (f"jobmirror_worker_up{{{SELECTED}}} {LEADS}", "{{worker}}")),
        timeseries(
            "Jobs by state",
            "none",
            (f"sum by (state) (jobmirror_mirrored_jobs{{{SELECTED}}} {LEADS})", "{{state}}"),
            stacked=True,
        ),
        timeseries(
            "Jobs by worker",
            "none",
            (f'sum by (worker) (jobmirror_mirrored_jobs{{{SELECTED}, state!="finished"}} {LEADS})', "{{worker}}"),
            stacked=True,
        ),
        timeseries(
            "Rejections, conflicts, drops",
            "ops",
            (rate("jobmirror_refused_mirrors_total", "worker"), "mirrors refused by {{worker}}"),
            (rate("jobmirror_name_conflicts_total", "worker"), "names taken on {{worker}}"),
            (rate("jobmirror_worker_content_cut_total", "worker"), "status parts cut, {{worker}}"),
            (rate("jobmirror_unknown_objects_dropped_total", "worker"), "unknown objects, {{worker}}"),
        ),
        timeseries(
            "Sweeps",
            "none",
            (f"jobmirror_sweep_held_back{{{SELECTED}}}", "held back on {{worker}}"),
            (f"increase(jobmirror_sweep_deleted_total{{{SELECTED}}}[$__rate_interval])", "deleted on {{worker}}"),
            (f"increase(jobmirror_sweep_halted_total{{{SELECTED}}}[$__rate_interval])", "halted on {{worker}}"),
        ),
        timeseries(
            "Watch staleness", "s", (f"jobmirror_watch_staleness_seconds{{{SELECTED}}}", "{{cluster}} {{kind}}")
        ),
    ],
    "Latency": [
        timeseries("Status lag", "s", *quantiles("jobmirror_status_lag_seconds", "worker", "{{worker}}")),
        timeseries("Runnable source to created mirror", "s", *quantiles("jobmirror_create_to_copy_seconds", "", "")),
        timeseries("Work duration", "s", *quantiles("jobmirror_work_seconds", "", "")),
    ],
    "Throughput": [
        timeseries("Jobs placed", "ops", (rate("jobmirror_placements_total", "worker"), "{{worker}}"), stacked=True),
        timeseries(
            "Statuses stored", "ops", (rate("jobmirror_status_lag_seconds_count", "worker"), "{{worker}}"), stacked=True
        ),
        timeseries(
            "Rejected and foreign status writes",
            "ops",
            (rate("jobmirror_refused_status_writes_total", "worker"), "refused, {{worker}}"),
            (rate("jobmirror_foreign_status_writes_total", "job"), "written by others"),
        ),
        timeseries(
            "CronJob Jobs not started",
            "none",
            (f"jobmirror_cronjob_jobs_unstarted{{{SELECTED}}} {LEADS}", "Jobs"),
        ),
    ],
    "API requests": [
        timeseries(
            "Requests", "reqps", (rate("jobmirror_api_requests_total", "cluster, verb"), "{{cluster}} {{verb}}")
        ),
        timeseries(
            "Failed requests",
            "reqps",
            (rate("jobmirror_api_requests_total", "cluster, code", ', code!~"2.."'), "{{cluster}} {{code}}"),
        ),
        timeseries("Duration", "s", *quantiles("jobmirror_api_request_seconds", "cluster", "{{cluster}}")),
        timeseries("Watch restarts", "ops", (rate("jobmirror_watch_restarts_total", "cluster"), "{{cluster}}")),
    ],
    "Queue and process": [
        timeseries("Queue depth", "none", (f"jobmirror_queue_depth{{{SELECTED}}}", "{{lane}}"), stacked=True),
        timeseries(
            "Oldest key",
            "s",
            (f"jobmirror_queue_oldest_seconds{{{SELECTED}}}", "waiting"),
            (f"jobmirror_queue_longest_running_seconds{{{SELECTED}}}", "under way"),
        ),
        timeseries("Queue wait", "s", *quantiles("jobmirror_queue_wait_seconds", "", "")),
        timeseries(
            "Retries",
            "ops",
            (rate("jobmirror_queue_retries_total", "job"), "keys"),
            (rate("jobmirror_task_restarts_total", "task"), "task {{task}}"),
        ),
        timeseries("Event loop lag", "s", (f"jobmirror_loop_lag_seconds{{{SELECTED}}}", "{{instance}}")),
        timeseries(
            "CPU", "short", (f"rate(process_cpu_seconds_total{{{SELECTED}}}[$__rate_interval])", "{{instance}}")
        ),
        timeseries("Memory", "bytes", (f"process_resident_memory_bytes{{{SELECTED}}}", "{{instance}}")),
        timeseries("Version", "none", (f"jobmirror_build_info{{{SELECTED}}}", "{{instance}} {{version}} {{program}}")),
    ],
    "Job controller": [
        timeseries("Syncs", "ops", (rate("job_controller_job_syncs_total", "action, result"), "{{action}} {{result}}")),
        timeseries(
            "Sync duration", "s", *quantiles("job_controller_job_sync_duration_seconds", "action", "{{action}}")
        ),
        timeseries(
            "Finished",
            "ops",
            (rate("job_controller_jobs_finished_total", "result"), "Jobs {{result}}"),
            (rate("job_controller_job_pods_finished_total", "result"), "pods {{result}}"),
        ),
        timeseries(
            "Pods created",
            "ops",
            (rate("job_controller_job_pods_creation_total", "reason, status"), "{{reason}} {{status}}"),
        ),
        timeseries(
            "Finished pods with the tracking finalizer",
            "none",
            (
                f'sum by (job) (job_controller_terminated_pods_tracking_finalizer_total{{{SELECTED}, event="add"}}) - '
                f'sum by (job) (job_controller_terminated_pods_tracking_finalizer_total{{{SELECTED}, event="delete"}})',
                "pods",
            ),
        ),
        timeseries("Queues", "none", (f"workqueue_depth{{{SELECTED}}}", "{{name}}")),
    ],
    "Webhook": [
        timeseries(
            "Reviews", "reqps", (rate("jobmirror_webhook_answers_total", "hook, answer"), "{{hook}} {{answer}}")
        ),
        timeseries("Response time", "s", *quantiles("jobmirror_webhook_seconds", "hook", "{{hook}}")),
    ],
    "Tokens and certificates": [
        timeseries(
            "Time to expiry",
            "s",
            (f"jobmirror_worker_token_expiry_timestamp_seconds{{{SELECTED}}} - time()", "token of {{worker}}"),
            (f"(jobmirror_certificate_expiry_timestamp_seconds{{{SELECTED}}} > 0) - time()", "HTTPS certificate"),
        ),
        timeseries(
            "Renewals", "ops", (rate("jobmirror_token_renewals_total", "worker, result"), "{{worker}} {{result}}")
        ),
    ],
}
COLLAPSED = ("Job controller", "Webhook", "Tokens and certificates")


def dashboard() -> Json:
    """The whole dashboard, as Grafana imports it."""
    numbers = count(1)
    panels: list[Json] = []
    top = 0
    for title, inside in ROWS.items():
        placed, bottom = _placed(inside, top + 1, numbers)
        row: Json = {"type": "row", "title": title, "id": next(numbers), "collapsed": title in COLLAPSED, "panels": []}
        row["gridPos"] = {"h": 1, "w": WIDTH, "x": 0, "y": top}
        panels.append(row)
        if title in COLLAPSED:
            row["panels"] = placed
            top += 1
        else:
            panels += placed
            top = bottom
    return {
        "uid": UID,
        "title": "Job mirror",
        "tags": ["jobmirror", "kubernetes"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_DATASOURCE, _JOB]},
        "panels": panels,
    }


_DATASOURCE: Json = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
}
_JOB: Json = {
    "name": "job",
    "label": "Installation",
    "type": "query",
    "datasource": SOURCE,
    "definition": "label_values(jobmirror_build_info, job)",
    "query": {"query": "label_values(jobmirror_build_info, job)", "refId": "job"},
    "refresh": 2,
    "includeAll": True,
    "allValue": ".*",
    "multi": True,
    "current": {},
}


def _placed(panels: list[Json], top: int, numbers: count[int]) -> tuple[list[Json], int]:
    """Numbers in one line of six, everything else three in a line; and the first free line below."""
    found, x, y = [], 0, top
    for panel in panels:
        width, height = (4, 4) if panel["type"] == "stat" else (8, HEIGHT)
        if x + width > WIDTH:
            x, y = 0, y + HEIGHT
        found.append(panel | {"id": next(numbers), "gridPos": {"h": height, "w": width, "x": x, "y": y}})
        x += width
    return found, y + HEIGHT


def text() -> str:
    """What the file holds."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"{TARGET}\n")
