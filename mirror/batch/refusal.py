"""The answer of an API server that refuses a Job for what is in it (E1, E2)."""

from __future__ import annotations

from collections.abc import Sequence

from mirror.batch.canonical import Json
from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation


def invalid_status(name: str, violations: Sequence[Violation]) -> Json:
    """The body of the 422: every cause with its repetitions, and a message without them."""
    distinct = list(dict.fromkeys(f"{one.field}: {one.message}" for one in violations))
    listed = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Job.batch {quoted(name)} is invalid" + (f": {listed}" if distinct else ""),
        "reason": "Invalid",
        "details": {
            **({"name": name} if name else {}),
            "group": "batch",
            "kind": "Job",
            "causes": [{"reason": one.reason, "message": one.message, "field": one.field} for one in violations],
        },
        "code": 422,
    }
