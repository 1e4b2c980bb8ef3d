"""What a panel of the dashboard looks like, and the queries that several have in common.

Used by ``generate_dashboard``, which says which panels there are.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SELECTED = 'job=~"$job"'
"""Every query names the installation; the rest of a selector follows."""
ON_WORKER = f'{SELECTED}, worker=~"$worker"'
"""Of metrics that have the label."""
ON_CLUSTER = f'{SELECTED}, cluster=~"$worker|management"'
"""The management cluster belongs to every choice of workers."""
LEADS = 'and on (job, instance) jobmirror_leader{job=~"$job"} == 1'


def _targets(queries: tuple[tuple[str, str], ...]) -> list[Json]:
    return [
        {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "legendFormat": legend or "__auto"}
        for number, (expr, legend) in enumerate(queries)
    ]


def timeseries(title: str, about: str, unit: str, *queries: tuple[str, str], stacked: bool = False) -> Json:
    """Lines over time; a query is an expression and its legend. ``about``: what it shows, and what is usual."""
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


def stat(title: str, about: str, unit: str, query: str, *, red_from: float | None = None) -> Json:
    """One number; red from a value on."""
    red = [{"color": "red", "value": red_from}] if red_from is not None else []
    return number(title, about, unit, query, [{"color": "green", "value": None}, *red])


def number(title: str, about: str, unit: str, query: str, steps: list[Json]) -> Json:
    """One number, coloured by steps."""
    return {
        "type": "stat",
        "title": title,
        "description": about,
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
    chosen = _chosen(metric, by)
    return tuple(
        (
            f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{chosen}}}[$__rate_interval])))",
            f"{name} {legend}".strip(),
        )
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    )


def rate(metric: str, by: str, more: str = "") -> str:
    """Per second, summed up."""
    return f"sum by ({by}) (rate({metric}{{{_chosen(metric, by)}{more}}}[$__rate_interval]))"


def _chosen(metric: str, by: str) -> str:
    """The selector that the variables of the dashboard ask for, by the labels of the metric that are looked at."""
    if "worker" in by.split(", ") or metric in _ADDED_UP:
        return ON_WORKER
    return ON_CLUSTER if "cluster" in by.split(", ") else SELECTED


_ADDED_UP = ("jobmirror_status_lag_seconds",)
"""Metrics by worker that one number shows for all that are chosen."""


def variable(name: str, label: str, values: str) -> Json:
    """One of the dashboard's, that takes several values, or all."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": values,
        "query": {"query": values, "refId": name},
        "refresh": 2,
        "sort": 1,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {},
    }
