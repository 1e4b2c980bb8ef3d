"""What is asked of a Job's spec, and of when it started, only where it is fenced or tried elsewhere.

Read anew each time: ``spec_facts`` remembers what is asked of every Job. Called by ``fence`` and ``retry``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mirror.batch import times, views
from mirror.kube.objects import JUNK, Object


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    termination_grace_period_seconds: float | None = None


class _Template(msgspec.Struct, gc=False):
    spec: _PodSpec | None = None


class _Rule(msgspec.Struct, gc=False):
    action: str = ""


class _Policy(msgspec.Struct, gc=False):
    rules: list[_Rule] | None = None


class RareSpec(msgspec.Struct, gc=False, rename="camel"):
    """Those fields, as they came."""

    active_deadline_seconds: int | None = None
    suspend: bool | None = None
    manual_selector: bool | None = None
    parallelism: int | None = None
    pod_failure_policy: _Policy | None = None
    template: _Template | None = None

    @property
    def grace_seconds(self) -> float | None:
        """How long its pods may take to end, if they say so."""
        pod = self.template.spec if self.template is not None else None
        return pod.termination_grace_period_seconds if pod is not None else None

    @property
    def ignores_failures(self) -> bool:
        """Whether a pod of it may end without being counted (F3)."""
        policy = self.pod_failure_policy
        return policy is not None and any(rule.action == "Ignore" for rule in policy.rules or ())


_decode = msgspec.json.Decoder(RareSpec | None).decode


def read(found: Object) -> RareSpec | None:
    """None where it makes no sense: a worker may answer anything."""
    try:
        return _decode(found.spec) or RareSpec()
    except JUNK:
        return None


def started_at(status: Mapping[str, object]) -> int | None:
    """Its ``startTime`` in seconds since 1970; None where there is none, or it is no time."""
    text = views.optional_text(status.get("startTime"))
    try:
        return times.seconds(text) if text else None
    except times.BadTime:
        return None
