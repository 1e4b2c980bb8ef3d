"""The kind CustomResourceDefinition itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery import patterns
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.crds import definition_rules
from mirror.embedded.apiserver.crds.forbidden_keywords import unrecognized_formats
from mirror.embedded.apiserver.crds.rules import WORD
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin, status_update
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation import metadata

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceDefinitions(Builtin):
    """Definitions as users write them; ``definitions`` carries them out."""

    struct = "CustomResourceDefinition"
    is_namespaced = False
    has_generation = True
    columns = (printers.NAME, Column("Created At", "date", description=TEXTS["CREATED"]))

    def __init__(self) -> None:
        self.subresources = {"status": status_update(self, keeps=("spec",))}

    def default(self, body: Json, context: Context) -> None:
        spec = body.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        spec.setdefault("conversion", {"strategy": "None"})
        spec["conversion"].setdefault("strategy", "None")

    def prepare_create(self, body: Json, context: Context) -> Json:
        body = super().prepare_create(body, context)
        stored = [one["name"] for one in body["spec"].get("versions") or () if one["storage"]][:1]
        body["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored or None,
        }
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        stored = list(new.get("status", {}).get("storedVersions") or ())
        for version in new["spec"].get("versions") or ():
            if version["storage"] and version["name"] not in stored:
                stored.append(version["name"])
                new["status"] = new["status"] | {"storedVersions": stored}
        return new

    def served(self, stored: Json) -> Json:
        """Schemas may hold anything, and refer to themselves: they stay as they came."""
        return stored

    def check_meta(self, body: Json) -> Iterator[Violation]:
        names = definition_rules.name_problems(body)
        yield from metadata.check_meta(body["metadata"], name_problems=names, is_namespaced=False, is_core=False)

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        yield from definition_rules.check_definition(body)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [
            *metadata.check_meta_update(new, old, is_core=False),
            *definition_rules.check_definition(new),
            *definition_rules.check_change(new, old, is_established=has_condition(old, "Established")),
        ]

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        if old is not None and same(new["spec"], old["spec"]):
            return ()
        versions = new["spec"].get("versions") or ()
        schemas = [(one.get("schema") or {}).get("openAPIV3Schema") for one in versions]
        odd = dict.fromkeys(format_ for one in schemas for format_ in unrecognized_formats(one))
        return [f"unrecognized format {quoted(one)}" for one in odd] + [
            f"spec.versions of {version['name']}: {word} is not evaluated by this server{why}"
            for word, why in _not_evaluated()
            for version in versions
            if _mentions(version.get("schema"), word)
        ]

    def begin_deletion(self, body: Json, context: Context) -> None:
        finalizers = body["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        set_condition(
            body["status"],
            "Terminating",
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            context.now,
        )

    def is_held(self, body: Json) -> bool:
        """It is deleted after its objects."""
        return "deletionTimestamp" not in body["metadata"]

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], body["metadata"].get("creationTimestamp")]


def has_condition(definition: Json, kind: str) -> bool:
    """Whether a condition is True."""
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def set_condition(status: Json, kind: str, value: str, reason: str, message: str, now: str) -> None:
    """Add or change a condition, in place."""
    wanted = {"type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message}
    conditions = [dict(one) for one in status.get("conditions") or ()]
    for one in conditions:
        if one["type"] == kind:
            if one["status"] == value:
                wanted["lastTransitionTime"] = one["lastTransitionTime"]
            one.update(wanted)
            break
    else:
        conditions.append(wanted)
    status["conditions"] = conditions


def _not_evaluated() -> Sequence[tuple[str, str]]:
    """Words of schemas that mean nothing here, and why."""
    if patterns.are_evaluated():
        return []
    why = "it lacks RE2 (pip install 'jobmirror[embedded]')"
    return [("pattern", f": {why}"), (WORD, f" where it matches patterns: {why}")]


def _mentions(value: Any, name: str) -> bool:
    if isinstance(value, Mapping):
        # A property of that name has a schema for a value.
        if name in value and not isinstance(value[name], Mapping):
            return True
        return any(_mentions(one, name) for one in value.values())
    return isinstance(value, list) and any(_mentions(one, name) for one in value)


KIND = Kind(
    GROUP,
    "v1",
    "CustomResourceDefinition",
    PLURAL,
    CustomResourceDefinitions(),
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    is_namespaced=False,
)
