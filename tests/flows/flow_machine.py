"""Random users, operators and strangers of a management cluster and its workers, and a manager, for hypothesis."""

from __future__ import annotations

from typing import Any, ClassVar

from flow_machine_base import NAMES, WAITS, Machine
from flow_world import job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.model import names

WORKERS = ("east", "west")
WORKER = st.sampled_from(WORKERS)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "slow": {"run_for": "40s"},
    "wide": {"parallelism": 3, "completions": 4, "run_for": "2s"},
    "indexed": {"parallelism": 2, "completions": 3, "completionMode": "Indexed", "run_for": "2s"},
    "failing": {"exit_code": 3, "backoffLimit": 1},
    "late": {"run_for": "30s", "activeDeadlineSeconds": 10},
    "replacing": {"parallelism": 2, "completions": 2, "podReplacementPolicy": "Failed", "run_for": "5s"},
    "short-lived": {"ttlSecondsAfterFinished": 5},
}
ANNOTATIONS: dict[str, dict[str, str]] = {
    "plain": {},
    "east only": {names.WORKER_SELECTOR: "name=east"},
    "held": {names.HELD: "true"},
    "west first": {names.WORKER_ORDER: "west,e*"},
    "spread": {names.SPREAD_BY: "name"},
    "urgent": {names.PRIORITY: "5"},
}


class Everybody(Machine):
    """All that may happen to a management cluster, two workers and a manager."""

    WORKERS: ClassVar[tuple[str, ...]] = WORKERS

    # -- users ---------------------------------------------------------------------------------------------------------

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(KINDS)),
        annotations=st.sampled_from(sorted(ANNOTATIONS)),
        is_suspended=st.booleans(),
        is_ours=st.sampled_from((True, True, True, False)),
        wait=WAITS,
    )
    def a_user_creates(
        self, name: str, kind: str, annotations: str, is_suspended: bool, is_ours: bool, wait: float
    ) -> None:
        body = job(
            name,
            annotations=ANNOTATIONS[annotations],
            managed_by=names.DEFAULT_MANAGED_BY if is_ours else None,
            suspend=is_suspended,
            **KINDS[kind],
        )
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(name=NAMES, propagation=st.sampled_from(("Background", "Foreground", "Orphan")), wait=WAITS)
    def a_user_deletes(self, name: str, propagation: str, wait: float) -> None:
        self._do(self._and_wait(self.world.delete(name, propagation=propagation), wait))

    @rule(name=NAMES, is_suspended=st.booleans(), wait=WAITS)
    def a_user_suspends_or_resumes(self, name: str, is_suspended: bool, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"spec": {"suspend": is_suspended}}), wait))

    @rule(name=NAMES, parallelism=st.integers(0, 4), wait=WAITS)
    def a_user_scales(self, name: str, parallelism: int, wait: float) -> None:
        # Not to 0 for good: it would never end.
        parallelism = max(parallelism, 1)
        self._do(self._and_wait(self.world.change(name, {"spec": {"parallelism": parallelism}}), wait))

    @rule(name=NAMES, value=st.sampled_from(("x", "y", None)), wait=WAITS)
    def a_user_labels(self, name: str, value: str | None, wait: float) -> None:
        patch = {"metadata": {"labels": {"team": value}, "annotations": {names.ASSIGNED_WORKER: value}}}
        self._do(self._and_wait(self.world.change(name, patch), wait))

    @rule(name=NAMES, wait=WAITS)
    def a_user_holds_with_a_finalizer(self, name: str, wait: float) -> None:
        patch = {"metadata": {"finalizers": ["example.com/hold"]}}
        self._do(self._and_wait(self.world.change(name, patch), wait))

    # -- strangers on workers ------------------------------------------------------------------------------------------

    @rule(worker=WORKER, name=NAMES, wait=WAITS)
    def a_stranger_deletes_a_job(self, worker: str, name: str, wait: float) -> None:
        self._do(self._and_wait(self.world.delete(name, cluster=worker), wait))

    @rule(worker=WORKER, name=NAMES, wait=WAITS)
    def a_stranger_takes_labels_away(self, worker: str, name: str, wait: float) -> None:
        patch = {"metadata": {"labels": {names.ORIGIN: None, names.SOURCE_UID: None}}}
        self._do(self._and_wait(self.world.change(name, patch, cluster=worker), wait))

    @rule(worker=WORKER, name=NAMES, wait=WAITS)
    def a_stranger_has_a_job_of_that_name(self, worker: str, name: str, wait: float) -> None:
        body = job(name, managed_by=None, run_for="3s")
        self._do(self._and_wait(tolerant(self.world.workers[worker].api.create(path(""), body)), wait))

    @rule(worker=WORKER, name=NAMES, wait=WAITS)
    def a_stranger_deletes_pods(self, worker: str, name: str, wait: float) -> None:
        pods = "/api/v1/namespaces/default/pods"
        selector = f"batch.kubernetes.io/job-name={name}"
        request = self.world.workers[worker].api.call("DELETE", pods, labelSelector=selector)
        self._do(self._and_wait(tolerant(request), wait))

    # -- operators -----------------------------------------------------------------------------------------------------

    @rule(
        worker=WORKER,
        annotations=st.sampled_from(({}, {"cordoned": "true"}, {"capacity": "1"}, {"drain": "wait"})),
        wait=WAITS,
    )
    def an_operator_annotates_a_worker(self, worker: str, annotations: dict[str, str], wait: float) -> None:
        self._do(self._and_wait(self.world.register(worker, **annotations), wait))

    @rule(worker=WORKER, wait=WAITS)
    def an_operator_deletes_a_worker(self, worker: str, wait: float) -> None:
        self._do(self._and_wait(self.world.unregister(worker), wait))
