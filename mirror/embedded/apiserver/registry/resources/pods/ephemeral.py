"""``pods/ephemeralcontainers``: containers for debugging are added to a pod; none is ever changed or removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, forbidden
from mirror.embedded.apiserver.apimachinery.canonical import same
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json
from mirror.embedded.apiserver.registry.builtin import keep
from mirror.embedded.apiserver.registry.resources.pods import changes
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.pods import pod

_FIELD = "spec.ephemeralContainers"
KEPT_METADATA = ("deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that some subresources do not change."""


def prepare(new: Json, old: Json, context: Context) -> Json:
    """The pod as it was, with these ephemeral containers."""
    wanted = new["spec"].get("ephemeralContainers")
    keep(new, old, ("status",))
    keep(new["metadata"], old["metadata"], KEPT_METADATA)
    new["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    if wanted:
        new["spec"]["ephemeralContainers"] = wanted
    if not same(new["spec"], old["spec"]):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def check(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    """The rules of any pod, and that what there was is still there."""
    if pod.MIRROR in old["metadata"].get("annotations", {}):
        return [forbidden("[]", "static pods do not support ephemeral containers")]
    return [
        *metadata.check_meta_update(new, old),
        *pod.check(new),
        *changes.check_annotations(new, old),
        *_check_kept(new["spec"].get("ephemeralContainers", ()), old["spec"].get("ephemeralContainers", ())),
    ]


def _check_kept(new: Sequence[Json], old: Sequence[Json]) -> Iterator[Violation]:
    by_name = {one["name"]: one for one in new}
    for one in old:
        words = f"existing ephemeral containers {quoted(one['name'])} may not be"
        if one["name"] not in by_name:
            yield forbidden(_FIELD, f"{words} removed\n")
        elif not same(one, by_name[one["name"]]):
            difference = changes.difference(one, by_name[one["name"]], "EphemeralContainer")
            yield forbidden(_FIELD, f"{words} changed\n{difference}")
