"""Writes ``dashboard.json`` beside it: ``python deploy/observability/generate_dashboard.py``.

A row is a line here, a panel is a call; what all panels have in common is in ``dashboard_panels``. Tests compare the
file with what this prints, and every metric with the registry.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

from dashboard_panels import (
    LEADS,
    ON_CLUSTER,
    ON_WORKER,
    SELECTED,
    Json,
    number,
    quantiles,
    rate,
    stat,
    timeseries,
    variable,
)

TARGET = Path(__file__).with_name("dashboard.json")
UID = "jobmirror-overview"
WIDTH, HEIGHT = 24, 7

ROWS: dict[str, list[Json]] = {
    "Overview": [
        number(
            "Leaders",
            "Managers that hold the Lease. One is right; none: nothing is placed and no status comes back.",
            "none",
            f"sum(jobmirror_leader{{{SELECTED}}})",
            [{"color": "red", "value": None}, {"color": "green", "value": 1}, {"color": "red", "value": 2}],
        ),
        stat(
            "Unreachable workers",
            "Workers that do not answer the leader. Their Jobs' statuses are not updated, and they get no new Jobs.",
            "none",
            f"count(jobmirror_worker_up{{{ON_WORKER}}} == 0 {LEADS}) or vector(0)",
            red_from=1,
        ),
        stat(
            "Active Jobs",
            "Jobs that are recorded on a worker and have not finished.",
            "none",
            f'sum(jobmirror_mirrored_jobs{{{ON_WORKER}, state!="finished"}} {LEADS}) or vector(0)',
        ),
        stat(
            "Waiting Jobs",
            "Jobs that no worker has been chosen for yet, of all workers. `mirror get --state Waiting` says why.",
            "none",
            f"sum(jobmirror_waiting_jobs{{{SELECTED}}})",
        ),
        stat(
            "Longest wait",
            "How long the Job that waits longest has waited for a worker; half an hour alerts.",
            "s",
            f"max(jobmirror_waiting_oldest_seconds{{{SELECTED}}})",
            red_from=1800,
        ),
        stat(
            "Status lag, p99",
            "From seeing a change on a worker to having it stored on the Job. Milliseconds are usual, 5 s alert.",
            "s",
            quantiles("jobmirror_status_lag_seconds", "", "")[1][0],
            red_from=5,
        ),
    ],
    "Workers": [
        timeseries(
            "Workers ready",
            "1 while a worker answers and all its mirrors have been seen, else 0.",
            "none",
            (f"jobmirror_worker_up{{{ON_WORKER}}} {LEADS}", "{{worker}}"),
        ),
        timeseries(
            "Jobs by state",
            "Jobs that are recorded on a worker: creating (no mirror seen yet), running, suspended, finished.",
            "none",
            (f"sum by (state) (jobmirror_mirrored_jobs{{{ON_WORKER}}} {LEADS})", "{{state}}"),
            stacked=True,
        ),
        timeseries(
            "Jobs by worker",
            "Jobs that have not finished, by the worker that they are recorded on.",
            "none",
            (f'sum by (worker) (jobmirror_mirrored_jobs{{{ON_WORKER}, state!="finished"}} {LEADS})', "{{worker}}"),
            stacked=True,
        ),
        timeseries(
            "Jobs by kind",
            "What has not finished, by its kind: Jobs, and objects of the other kinds that the setting kinds enables.",
            "none",
            (f'sum by (kind) (jobmirror_mirrored_jobs{{{ON_WORKER}, state!="finished"}} {LEADS})', "{{kind}}"),
            stacked=True,
        ),
        timeseries(
            "Jobs by reason",
            "Jobs that wait for a worker or make no progress on one, by the reason that is written on them.",
            "none",
            (f"sum by (reason) (jobmirror_jobs_by_reason{{{SELECTED}}} {LEADS})", "{{reason}}"),
            stacked=True,
        ),
        timeseries(
            "Rejections, conflicts, drops",
            "Mirrors refused, names that are somebody else's there, and contents that are not usable. Usually 0.",
            "ops",
            (rate("jobmirror_refused_mirrors_total", "worker, kind"), "{{kind}}s refused by {{worker}}"),
            (rate("jobmirror_name_conflicts_total", "worker, kind"), "names of {{kind}}s taken on {{worker}}"),
            (rate("jobmirror_worker_content_cut_total", "worker"), "status parts cut, {{worker}}"),
            (rate("jobmirror_unknown_objects_dropped_total", "worker"), "unknown objects, {{worker}}"),
        ),
        timeseries(
            "Sweeps",
            "Mirrors deleted since their source is gone. Held back: too many at once to be right, so none is deleted.",
            "none",
            (f"jobmirror_sweep_held_back{{{ON_WORKER}}}", "held back on {{worker}}"),
            (f"increase(jobmirror_sweep_deleted_total{{{ON_WORKER}}}[$__rate_interval])", "deleted on {{worker}}"),
            (f"increase(jobmirror_sweep_halted_total{{{ON_WORKER}}}[$__rate_interval])", "halted on {{worker}}"),
        ),
        timeseries(
            "Moves",
            "Jobs moved from lost workers, whose copies there may run on; copies deleted once a worker is back.",
            "none",
            (f"increase(jobmirror_secondary_mirrors_total{{{SELECTED}}}[$__rate_interval])", "{{why}}"),
            (f"increase(jobmirror_left_behind_deleted_total{{{ON_WORKER}}}[$__rate_interval])", "deleted, {{worker}}"),
            (f"increase(jobmirror_fence_breaches_total{{{ON_WORKER}}}[$__rate_interval])", "breaches, {{worker}}"),
            (f"jobmirror_moves_held{{{SELECTED}}}", "held"),
        ),
        timeseries(
            "Leases",
            "Of fenced Jobs: set anew, and rejected by the worker.",
            "none",
            (f"rate(jobmirror_leases_renewed_total{{{ON_WORKER}}}[$__rate_interval])", "{{worker}}"),
            (f"rate(jobmirror_leases_refused_total{{{ON_WORKER}}}[$__rate_interval])", "rejected, {{worker}}"),
        ),
        timeseries(
            "Watch staleness",
            "Since a watch said anything; a healthy one does once a minute, five minutes alert.",
            "s",
            (f"jobmirror_watch_staleness_seconds{{{ON_CLUSTER}}}", "{{cluster}} {{kind}}"),
        ),
    ],
    "Latency": [
        timeseries(
            "Status lag",
            "From seeing a change of a mirror to having it stored on its source, by worker.",
            "s",
            *quantiles("jobmirror_status_lag_seconds", "worker", "{{worker}}"),
        ),
        timeseries(
            "Runnable source to created mirror",
            "From seeing that an object may run to its mirror's creation; waiting for a worker counts.",
            "s",
            *quantiles("jobmirror_create_to_copy_seconds", "kind", "{{kind}}"),
        ),
        timeseries(
            "Work duration",
            "How long the work on a key took, its requests included.",
            "s",
            *quantiles("jobmirror_work_seconds", "", ""),
        ),
    ],
    "Throughput": [
        timeseries(
            "Jobs placed",
            "Workers recorded on Jobs, per second.",
            "ops",
            (rate("jobmirror_placements_total", "worker"), "{{worker}}"),
            stacked=True,
        ),
        timeseries(
            "Statuses stored",
            "Statuses of workers that were stored on their Jobs, per second.",
            "ops",
            (rate("jobmirror_status_lag_seconds_count", "worker"), "{{worker}}"),
            stacked=True,
        ),
        timeseries(
            "Rejected and foreign status writes",
            "Statuses that the management cluster rejected, or another program has written. Usually 0.",
            "ops",
            (rate("jobmirror_refused_status_writes_total", "worker, kind"), "refused, {{worker}} {{kind}}"),
            (rate("jobmirror_foreign_status_writes_total", "kind"), "written by others, {{kind}}"),
        ),
        timeseries(
            "Jobs of other managers",
            "Jobs that a manager in another namespace has placed, with the same managedBy: left alone. Should be 0.",
            "none",
            (f"jobmirror_jobs_of_other_managers{{{SELECTED}}}", "Jobs"),
        ),
        timeseries(
            "CronJob Jobs not started",
            "Jobs of CronJobs that may run and have not started: the next one may be skipped because of them.",
            "none",
            (f"jobmirror_cronjob_jobs_unstarted{{{SELECTED}}} {LEADS}", "Jobs"),
        ),
    ],
    "API requests": [
        timeseries(
            "Requests",
            "Requests to the management cluster and to the chosen workers, per second.",
            "reqps",
            (rate("jobmirror_api_requests_total", "cluster, verb"), "{{cluster}} {{verb}}"),
        ),
        timeseries(
            "Failed requests",
            "Those with another code than 2xx, or without an answer. Some 409 and 404 are normal.",
            "reqps",
            (rate("jobmirror_api_requests_total", "cluster, code", ', code!~"2.."'), "{{cluster}} {{code}}"),
        ),
        timeseries(
            "Duration",
            "From sending a request to having read its answer.",
            "s",
            *quantiles("jobmirror_api_request_seconds", "cluster", "{{cluster}}"),
        ),
        timeseries(
            "Watch restarts",
            "Some every few minutes are normal: API servers end watches.",
            "ops",
            (rate("jobmirror_watch_restarts_total", "cluster"), "{{cluster}}"),
        ),
    ],
    "Queue and process": [
        timeseries(
            "Queue depth",
            "Keys that are ready to be worked on, by the worker that they wait for.",
            "none",
            (f"jobmirror_queue_depth{{{SELECTED}}}", "{{lane}}"),
            stacked=True,
        ),
        timeseries(
            "Oldest key",
            "Age of the oldest key that waits (a minute alerts) and of the longest work under way (two alert).",
            "s",
            (f"jobmirror_queue_oldest_seconds{{{SELECTED}}}", "waiting"),
            (f"jobmirror_queue_longest_running_seconds{{{SELECTED}}}", "under way"),
        ),
        timeseries("Queue wait", "How long keys waited.", "s", *quantiles("jobmirror_queue_wait_seconds", "", "")),
        timeseries(
            "Retries",
            "Keys that are worked on again after a failure, and tasks that failed and were started again (usually 0).",
            "ops",
            (rate("jobmirror_queue_retries_total", "job"), "keys"),
            (rate("jobmirror_task_restarts_total", "task"), "task {{task}}"),
        ),
        timeseries(
            "Event loop lag",
            "How late the event loop was, at worst in 15 s. A second alerts: most often too little CPU.",
            "s",
            (f"jobmirror_loop_lag_seconds{{{SELECTED}}}", "{{instance}}"),
        ),
        timeseries(
            "CPU",
            "Cores in use, by replica.",
            "short",
            (f"rate(process_cpu_seconds_total{{{SELECTED}}}[$__rate_interval])", "{{instance}}"),
        ),
        timeseries(
            "Memory",
            "Resident memory, by replica.",
            "bytes",
            (f"process_resident_memory_bytes{{{SELECTED}}}", "{{instance}}"),
        ),
        timeseries(
            "Version",
            "Which version runs where; two of them while an upgrade is under way.",
            "none",
            (f"jobmirror_build_info{{{SELECTED}}}", "{{instance}} {{version}} {{program}}"),
        ),
    ],
    "Job controller": [
        timeseries(
            "Syncs",
            "Syncs of Jobs without managedBy, where our Job controller runs.",
            "ops",
            (rate("job_controller_job_syncs_total", "action, result"), "{{action}} {{result}}"),
        ),
        timeseries(
            "Sync duration",
            "How long a sync took, waits for its limit of requests included.",
            "s",
            *quantiles("job_controller_job_sync_duration_seconds", "action", "{{action}}"),
        ),
        timeseries(
            "Finished",
            "Jobs and pods that have finished, by result.",
            "ops",
            (rate("job_controller_jobs_finished_total", "result"), "Jobs {{result}}"),
            (rate("job_controller_job_pods_finished_total", "result"), "pods {{result}}"),
        ),
        timeseries(
            "Pods created",
            "Pods created, by why and how it went.",
            "ops",
            (rate("job_controller_job_pods_creation_total", "reason, status"), "{{reason}} {{status}}"),
        ),
        timeseries(
            "Finished pods with the tracking finalizer",
            "Pods that have ended and are not counted yet; it goes back to 0.",
            "none",
            (
                f'sum by (job) (job_controller_terminated_pods_tracking_finalizer_total{{{SELECTED}, event="add"}}) - '
                f'sum by (job) (job_controller_terminated_pods_tracking_finalizer_total{{{SELECTED}, event="delete"}})',
                "pods",
            ),
        ),
        timeseries("Queues", "Keys that wait, by queue.", "none", (f"workqueue_depth{{{SELECTED}}}", "{{name}}")),
    ],
    "Webhook and access": [
        timeseries(
            "Reviews",
            "Admission reviews, by webhook and answer. Errors keep Jobs of chosen namespaces from being created.",
            "reqps",
            (rate("jobmirror_webhook_answers_total", "hook, answer"), "{{hook}} {{answer}}"),
        ),
        timeseries(
            "Response time",
            "How long an answer took; the API server waits for 5 s.",
            "s",
            *quantiles("jobmirror_webhook_seconds", "hook", "{{hook}}"),
        ),
        timeseries(
            "Passed on",
            "Users' requests that another manager has to answer; unreachable for long: they do not reach each other.",
            "reqps",
            (rate("jobmirror_access_passed_on_total", "result"), "{{result}}"),
        ),
    ],
    "Tokens and certificates": [
        timeseries(
            "Time to expiry",
            "Of each worker's token, which is renewed when a third of its life is left, and of our HTTPS certificate.",
            "s",
            (f"jobmirror_worker_token_expiry_timestamp_seconds{{{ON_WORKER}}} - time()", "token of {{worker}}"),
            (f"(jobmirror_certificate_expiry_timestamp_seconds{{{SELECTED}}} > 0) - time()", "HTTPS certificate"),
        ),
        timeseries(
            "Renewals",
            "Tokens asked of workers, by how it went.",
            "ops",
            (rate("jobmirror_token_renewals_total", "worker, result"), "{{worker}} {{result}}"),
        ),
    ],
}
COLLAPSED = ("Job controller", "Webhook and access", "Tokens and certificates")


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
        "description": "What jobmirror does. Metrics are explained in docs/metrics.md, alerts in docs/runbook.md.",
        "templating": {"list": [_DATASOURCE, _JOB, _WORKER]},
        "panels": panels,
    }


_DATASOURCE: Json = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
}


_JOB = variable("job", "Installation", "label_values(jobmirror_build_info, job)")
_WORKER = variable("worker", "Worker", f"label_values(jobmirror_worker_up{{{SELECTED}}}, worker)")


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
