"""Random users and strangers of one cluster whose Jobs are run by our Job controller, for hypothesis."""

from __future__ import annotations

from typing import Any

from flow_machine_base import NAMES, WAITS, Machine
from flow_world import SIMULATED, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

FAIL_ON_42 = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
IGNORE_43 = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [43]}}
INDEXED = {"completionMode": "Indexed"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "wide": {"parallelism": 3, "completions": 5},
    "queue": {"parallelism": 3, "completions": None},
    "indexed": {"parallelism": 3, "completions": 6, **INDEXED},
    "elastic": {"parallelism": 2, "completions": 2, **INDEXED},
    "failing": {"exit_code": 1, "backoffLimit": 2},
    "failing per index": {"parallelism": 4, "completions": 4, "backoffLimitPerIndex": 0, "index": {1: 1}, **INDEXED},
    "failing at 42": {"exit_code": 42, "podFailurePolicy": {"rules": [FAIL_ON_42]}},
    "ignoring 43": {
        "parallelism": 2,
        "completions": 2,
        "index": {0: 43},
        "podFailurePolicy": {"rules": [IGNORE_43]},
        "activeDeadlineSeconds": 90,
        **INDEXED,
    },
    "enough": {"parallelism": 3, "completions": 3, "successPolicy": {"rules": [{"succeededCount": 1}]}, **INDEXED},
    "late": {"run_for": "60s", "activeDeadlineSeconds": 15},
    "replacing": {"parallelism": 2, "completions": 3, "podReplacementPolicy": "Failed"},
    "short-lived": {"ttlSecondsAfterFinished": 5},
}
RUN_FOR = st.sampled_from(("10ms", "1s", "5s", "30s"))


class Jobs(Machine):
    """All that may happen to one cluster and its Jobs."""

    @rule(name=NAMES, kind=st.sampled_from(sorted(KINDS)), run_for=RUN_FOR, is_suspended=st.booleans(), wait=WAITS)
    def a_user_creates(self, name: str, kind: str, run_for: str, is_suspended: bool, wait: float) -> None:
        spec = {"run_for": run_for, "suspend": is_suspended} | KINDS[kind]
        by_index = spec.pop("index", {})
        body = job(name, managed_by=None, **spec)
        annotations = body["spec"]["template"]["metadata"]["annotations"]
        annotations |= {f"{SIMULATED}exit-code-index-{index}": str(code) for index, code in by_index.items()}
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(name=NAMES, propagation=st.sampled_from(("Background", "Foreground", "Orphan")), wait=WAITS)
    def a_user_deletes(self, name: str, propagation: str, wait: float) -> None:
        self._do(self._and_wait(self.world.delete(name, propagation=propagation), wait))

    @rule(name=NAMES, is_suspended=st.booleans(), wait=WAITS)
    def a_user_suspends_or_resumes(self, name: str, is_suspended: bool, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"spec": {"suspend": is_suspended}}), wait))

    @rule(name=NAMES, parallelism=st.integers(1, 5), wait=WAITS)
    def a_user_scales(self, name: str, parallelism: int, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"spec": {"parallelism": parallelism}}), wait))

    @rule(name=NAMES, size=st.integers(1, 5), wait=WAITS)
    def a_user_scales_an_elastic_job(self, name: str, size: int, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"spec": {"parallelism": size, "completions": size}}), wait))

    @rule(name=NAMES, grace=st.sampled_from((None, 0, 30)), wait=WAITS)
    def a_stranger_deletes_pods(self, name: str, grace: int | None, wait: float) -> None:
        pods = "/api/v1/namespaces/default/pods"
        options = {"gracePeriodSeconds": grace} if grace is not None else {}
        selector = f"batch.kubernetes.io/job-name={name}"
        request = self.world.management.api.call("DELETE", pods, options, labelSelector=selector)
        self._do(self._and_wait(tolerant(request), wait))
