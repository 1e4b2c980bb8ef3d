"""What the embedded API server's rules say of the same request, in the form of a server's answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from e2e.api_differential.cases import Case, Kind
from e2e.api_differential.steps import Json
from e2e.api_differential.wire import Answer
from mirror.batch.feature_gates import FeatureGates
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery.errors import invalid
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.registry.object_meta import SYSTEM_FIELDS, keep_system_fields
from mirror.embedded.apiserver.registry.resources.jobs import Jobs, warnings_of
from mirror.embedded.apiserver.validation import jobs, metadata

_JOBS = Jobs()
_UNKNOWN_UID = "00000000-0000-4000-8000-000000000000"
_SOME_SUFFIX = "bcdfg"
_SOME_TIME = "2026-03-01T12:00:00Z"


def answer(case: Case, real: Answer, *, namespace: str, gates: FeatureGates) -> Answer:
    """Our answer to a case. What the server makes up is taken from its answer: a generated name, the uid, the time."""
    if case.kind is Kind.CREATE:
        return _create(case.body, real, namespace, gates)
    if case.kind is Kind.UPDATE:
        return _update(case.body, case.start, gates)
    return _write_status(case.body, case.start)


def _create(body: Json, real: Answer, namespace: str, gates: FeatureGates) -> Answer:
    made_up = real.body.get("metadata") or {}
    body["metadata"]["namespace"] = namespace
    if not body["metadata"].get("name") and body["metadata"].get("generateName"):
        told = made_up.get("name") or real.body.get("details", {}).get("name")
        # A server that panicked (C32) has told nothing.
        body["metadata"]["name"] = told or f"{body['metadata']['generateName']}{_SOME_SUFFIX}"
    uid, now = made_up.get("uid", _UNKNOWN_UID), made_up.get("creationTimestamp", _SOME_TIME)
    context = Context(now=now, uid=uid, gates=gates)
    job = _decoded(body, context)
    for name in SYSTEM_FIELDS:
        job["metadata"].pop(name, None)
    job["metadata"] |= {"uid": uid, "creationTimestamp": now}
    job = _JOBS.prepare_create(job, context)
    if violations := jobs.check_create(job, gates=gates):
        return _refused(body, violations)
    return Answer(201, _JOBS.served(job), tuple(warnings_of(job, None)))


def _update(body: Json, old: Json, gates: FeatureGates) -> Answer:
    context = Context(now=_SOME_TIME, gates=gates)
    job = _JOBS.prepare_update(_replacing(body, old, context), old, context)
    if violations := [*_generic(job, old), *jobs.check_update(job, old, gates=gates)]:
        return _refused(body, violations)
    return Answer(200, _JOBS.served(job), tuple(warnings_of(job, old)))


def _write_status(body: Json, old: Json) -> Answer:
    context = Context(now=_SOME_TIME)
    job = _JOBS.subresources["status"].prepare(_replacing(body, old, context), old, context)
    if violations := [*_generic(job, old), *jobs.check_status_write(job, old)]:
        return _refused(body, violations)
    return Answer(200, _JOBS.served(job))


def _decoded(body: Json, context: Context) -> Json:
    job = _JOBS.decode(body)
    _JOBS.default(job, context)
    return job


def _replacing(body: Json, old: Json, context: Context) -> Json:
    job = _decoded(body, context)
    job["metadata"].setdefault("resourceVersion", old["metadata"]["resourceVersion"])
    keep_system_fields(job["metadata"], old["metadata"])
    return job


def _generic(job: Json, old: Json) -> Iterator[Violation]:
    """What the registry finds in any update."""
    return metadata.check_any_update(job["metadata"], old["metadata"])


def _refused(body: Json, violations: Sequence[Violation]) -> Answer:
    return Answer(422, invalid("Job", "batch", body["metadata"].get("name", ""), violations).status)
