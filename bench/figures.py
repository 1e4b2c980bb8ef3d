"""The arithmetic of the measurements: percentiles, medians, requests and CPU per Job. Values in, values out.

Not here: what is measured (``mirroring``, ``jobs``).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

Figures = dict[str, Any]
"""What a run has shown, as it is printed: JSON."""

RESOURCES = ("jobs", "jobsets", "mpijobs", "workloads", "events", "secrets", "configmaps", "leases")
"""Requests for these are counted; other programs of a cluster seldom ask for them."""

_SAMPLE = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_RESOURCE = re.compile(r'(?:^|,)resource="([^"]*)"')


def percentile(values: Iterable[float], share: float) -> float:
    """The nearest rank: the smallest value that at least this share of all is not above. NaN if there are none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(seconds: Collection[float]) -> Figures:
    """Number, median, 99th percentile and maximum, in milliseconds; without values only their number."""
    if not seconds:
        return {"n": 0}
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
    return {"n": len(seconds)} | {name: round(percentile(seconds, share) * 1000, 1) for name, share in shares.items()}


def requests_answered(metrics: str, resources: Collection[str] = RESOURCES) -> float:
    """How many requests an API server has answered, by its ``/metrics``; a watch counts when it ends."""
    found = ((_RESOURCE.search(labels), float(value)) for labels, value in _SAMPLE.findall(metrics))
    return sum(value for resource, value in found if resource and resource[1] in resources)


def per_job(before: float, after: float, own: int, jobs: int) -> float:
    """Requests per Job of whatever is measured: all but our own. NaN where the server did not say."""
    return round((after - before - own) / jobs, 2)


def cpu_seconds(stat: str, ticks_per_second: int) -> float:
    """User and system time in the text of ``/proc/PID/stat``, children that were waited for included."""
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return sum(map(int, fields[11:15])) / ticks_per_second


def rss_mib(status: str) -> float:
    """Resident memory in the text of ``/proc/PID/status``."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else math.nan


def median(runs: Sequence[Figures], *path: str) -> float:
    """Of one figure over several runs; ``path`` leads to it."""
    values = []
    for figures in runs:
        value: Any = figures
        for step in path:
            value = value[step]
        values.append(float(value))
    return statistics.median(values)


def ratio(ours: float, theirs: float) -> float:
    """NaN where there is nothing to compare with."""
    return ours / theirs if theirs else math.nan


def pids(given: Iterable[str]) -> Mapping[str, int]:
    """Of ``NAME=PID``.

    Raises:
        ValueError: it is not that.
    """
    pairs = (one.partition("=") for one in given)
    return {name: int(pid) for name, _, pid in pairs}
