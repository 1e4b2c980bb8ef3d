"""Namespaces and their lifecycle: they go when ``spec.finalizers`` is empty, which only ``/finalize`` can make it.

What is in them is deleted by a controller; that nothing new comes is an admission rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch.quoting import json_text
from mirror.batch.syntax import label_problems, qualified_name_problems
from mirror.batch.violations import Violation, invalid, invalid_text, invalid_texts
from mirror.embedded.apiserver.apimachinery.kinds import ALL_VERBS, Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json, Update
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import CORE_REFUSAL, Builtin, keep, status_update
from mirror.embedded.apiserver.validation import metadata

KUBERNETES = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
ACTIVE, TERMINATING = "Active", "Terminating"
_STANDARD_FINALIZERS = (KUBERNETES, "orphan", "foregroundDeletion")


class Namespaces(Builtin):
    """Cluster-scoped; the label with their name is always there."""

    struct = "Namespace"
    is_namespaced = False
    name_problems = staticmethod(label_problems)
    selectable = MappingProxyType({"status.phase": lambda body: str(body["status"].get("phase", ""))})
    selector_refusal = CORE_REFUSAL
    columns = (printers.NAME, Column("Status", description="The status of the namespace"), printers.AGE)

    def __init__(self) -> None:
        self.subresources = {
            "status": status_update(self, check=_check_status),
            "finalize": Update(self._prepare_finalize, _check_finalize, resets=(("status",),), verbs=("update",)),
        }

    def default(self, body: Json, context: Context) -> None:
        body["status"].setdefault("phase", ACTIVE)
        _label(body)

    def prepare_create(self, body: Json, context: Context) -> Json:
        body = super().prepare_create(body, context)
        body["status"] = {"phase": ACTIVE}
        finalizers = body["spec"].setdefault("finalizers", [])
        if KUBERNETES not in finalizers:
            finalizers.append(KUBERNETES)
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        keep(new["spec"], old["spec"], ("finalizers",))
        return new

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        for name in body["spec"].get("finalizers", ()):
            yield from _check_finalizer("spec.finalizers", name)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [*self.check_meta(new), *self.check(new, context), *metadata.check_meta_update(new, old)]

    def begin_deletion(self, body: Json, context: Context) -> None:
        body["status"]["phase"] = TERMINATING

    def is_held(self, body: Json) -> bool:
        # The first delete only marks, whatever the finalizers are.
        return bool(body["spec"].get("finalizers")) or "deletionTimestamp" not in body["metadata"]

    def served(self, stored: Json) -> Json:
        found = super().served(stored)
        found["metadata"] = dict(found["metadata"])
        _label(found)
        return found

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], body["status"].get("phase", ""), printers.age(body, now)]

    def _prepare_finalize(self, new: Json, old: Json, context: Context) -> Json:
        keep(new, old, ("status",))
        self.keep_generation(new, old)
        return new


def _label(body: Json) -> None:
    """A name that is still to be generated makes no label yet."""
    name = body["metadata"].get("name")
    if name:
        body["metadata"]["labels"] = body["metadata"].get("labels", {}) | {NAME_LABEL: name}


def _check_status(new: Json, old: Json, context: Context) -> Iterator[Violation]:
    phase = new["status"].get("phase", "")
    if "deletionTimestamp" not in new["metadata"]:
        if phase != ACTIVE:
            detail = "may only be 'Active' if `deletionTimestamp` is empty"
            yield invalid("status.Phase", json_text(phase), detail)
    elif phase != TERMINATING:
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        yield invalid("status.Phase", json_text(phase), detail)


def _check_finalize(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    return [
        *metadata.check_meta_update(new, old),
        *(
            violation
            for position, name in enumerate(new["spec"].get("finalizers", ()))
            for violation in _check_finalizer(f"spec.finalizers[{position}]", name)
        ),
    ]


def _check_finalizer(field: str, name: str) -> Iterator[Violation]:
    yield from invalid_texts(field, name, qualified_name_problems(name))
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield invalid_text(field, name, "name is neither a standard finalizer name nor is it fully qualified")


def kind() -> Kind:
    """``v1`` ``namespaces``, which has no deletecollection."""
    verbs = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    return Kind(
        "",
        "v1",
        "Namespace",
        "namespaces",
        Namespaces(),
        singular="namespace",
        short_names=("ns",),
        is_namespaced=False,
        verbs=verbs,
    )
