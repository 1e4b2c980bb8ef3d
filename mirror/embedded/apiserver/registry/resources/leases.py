"""Leases, by which programs agree on who leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from mirror.batch.violations import NEGATIVE, Violation, invalid
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation import metadata

_COORDINATED = ("strategy", "preferredHolder")
"""Of coordinated leader election, whose gate is off."""


class Leases(Builtin):
    """A PUT may create one, and must name the version that it replaces."""

    struct = "Lease"
    allows_create_on_update = True
    allows_unconditional_update = False
    columns = (printers.NAME, Column("Holder", description=TEXTS["LEASE_HOLDER"]), printers.AGE)

    def prepare_create(self, body: Json, context: Context) -> Json:
        body = super().prepare_create(body, context)
        for name in _COORDINATED:
            body["spec"].pop(name, None)
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        for name in _COORDINATED:
            new["spec"].pop(name, None)
        return new

    def check_meta(self, body: Json) -> Iterator[Violation]:
        return metadata.check_meta(body["metadata"], is_core=False)

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        duration, transitions = body["spec"].get("leaseDurationSeconds"), body["spec"].get("leaseTransitions")
        if duration is not None and duration <= 0:
            yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
        if transitions is not None and transitions < 0:
            yield invalid("spec.leaseTransitions", transitions, NEGATIVE)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [*metadata.check_meta_update(new, old, is_core=False), *self.check(new, context)]

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], body["spec"].get("holderIdentity", ""), printers.age(body, now)]


def kind() -> Kind:
    """``coordination.k8s.io/v1`` ``leases``."""
    return Kind("coordination.k8s.io", "v1", "Lease", "leases", Leases(), singular="lease")
