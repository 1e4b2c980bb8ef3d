"""What may change in a pod that exists: images, a shorter deadline, more tolerations, fewer scheduling gates, and
more ephemeral containers.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, required
from mirror.embedded.apiserver.apimachinery import printing
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.printing import labels_text
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json
from mirror.embedded.apiserver.registry.builtin import keep
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.pods import scheduling, template
from mirror.embedded.apiserver.validation.pods.template import MIRROR

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LARGEST = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ALLOWED = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def check_annotations(new: Json, old: Json) -> Iterator[Violation]:
    """Two kinds of annotations are fixed; the rules of all of them come once more."""
    after: Mapping[str, str] = new["metadata"].get("annotations", {})
    before: Mapping[str, str] = old["metadata"].get("annotations", {})
    for key in sorted(before.keys() | after.keys()):
        if after.get(key) == before.get(key):
            continue
        done = "remove or update" if key in before else "add"
        if key.startswith(_APP_ARMOR):
            yield forbidden(f"metadata.annotations[{key}]", f"may not {done} AppArmor annotations")
        if key == MIRROR:
            yield forbidden(f"metadata.annotations[{key}]", f"may not {done} mirror pod annotation")
    yield from template.check_pod_annotations(after, new["spec"])


def check(new: Json, old: Json) -> Iterator[Violation]:
    """The changes of a spec; the rules of a new pod are ``rules``'."""
    for kind in ("containers", "initContainers"):
        listed = new.get(kind) or ()
        if len(listed) != len(old.get(kind) or ()):
            yield forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
        yield from _check_images(f"spec.{kind}", listed)
    problem, goes_on = _deadline_problem(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    if problem is not None:
        yield problem
    if not goes_on:
        return
    yield from _check_tolerations(new, old)
    yield from _check_gates(new.get("schedulingGates", ()), old.get("schedulingGates", ()))
    if not same(new, old):
        yield from _check_rest(new, old)


def _check_images(field: str, containers: Sequence[Json]) -> Iterator[Violation]:
    for position, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            yield required(f"{field}[{position}].image")
        if image.strip() != image:
            yield invalid_text(f"{field}[{position}].image", image, "must not have leading or trailing whitespace")


def _deadline_problem(new: int | None, old: int | None) -> tuple[Violation | None, bool]:
    """What is wrong with a deadline, and whether anything after it is looked at."""
    field = "spec.activeDeadlineSeconds"
    if new is None:
        problem = "must not update from a positive integer to nil value"
        return (None if old is None else invalid(field, "null", problem)), True
    if not 0 <= new <= _LARGEST:
        return invalid(field, new, f"must be between 0 and {_LARGEST}, inclusive"), False
    if old is not None and old < new:
        return invalid(field, new, "must be less than or equal to previous value"), False
    return None, True


def _check_tolerations(new: Json, old: Json) -> Iterator[Violation]:
    wanted = [{**one, "tolerationSeconds": None} for one in new.get("tolerations", ())]
    for one in old.get("tolerations", ()):
        if {**one, "tolerationSeconds": None} not in wanted:
            yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
            return
    yield from scheduling.check_tolerations("spec.tolerations", new.get("tolerations", ()))


def _check_gates(new: Sequence[Json], old: Sequence[Json]) -> Iterator[Violation]:
    known = {one["name"] for one in old}
    for position, one in enumerate(new):
        if one["name"] not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{one['name']}'"
            yield forbidden(f"spec.schedulingGates[{position}].name", detail)


def _check_rest(new: Json, old: Json) -> Iterator[Violation]:
    """Everything that may not change, once what may is made the same."""
    made = dict(new)
    for kind in ("containers", "initContainers"):
        if made.get(kind):
            pairs = zip(made[kind], old[kind], strict=True)
            made[kind] = [_taking(one, before, ("image",)) for one, before in pairs]
    made = _taking(made, old, ("activeDeadlineSeconds", "schedulingGates", "tolerations"))
    if old["terminationGracePeriodSeconds"] < 0 and made["terminationGracePeriodSeconds"] == 1:
        made["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    if old.get("schedulingGates"):
        yield from _check_node_selector(made.get("nodeSelector", {}), old.get("nodeSelector", {}))
        made = _taking(made, old, ("nodeSelector",))
        yield from _check_node_affinity(made.get("affinity", {}), old.get("affinity", {}))
        made = _with_affinity(made, old)
    if not same(made, old):
        detail = (
            f"pod updates may not change fields other than {','.join(_ALLOWED)}\n{difference(old, made, 'PodSpec')}"
        )
        yield forbidden("spec", detail)


def _check_node_selector(new: Mapping[str, str], old: Mapping[str, str]) -> Iterator[Violation]:
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", labels_text(new or None), detail)


def _check_node_affinity(new: Json, old: Json) -> Iterator[Violation]:
    """Terms of a gated pod may only become stricter."""
    field = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms, old_terms = _terms(new), _terms(old)
    if not old_terms or same(new.get("nodeAffinity"), old.get("nodeAffinity")):
        return
    if len(terms) != len(old_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(field, printing.text(terms or None, "[NodeSelectorTerm]"), detail)
        return
    for position, (term, before) in enumerate(zip(terms, old_terms, strict=True)):
        if not _has_only_additions(term, before):
            detail = "only additions are allowed (no mutations or deletions)"
            yield invalid(f"{field}[{position}]", printing.text(term, "NodeSelectorTerm"), detail)


def _terms(affinity: Json) -> list[Json]:
    return affinity.get("nodeAffinity", {}).get(_REQUIRED, {}).get("nodeSelectorTerms") or []


def _has_only_additions(new: Json, old: Json) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(old.get(part) for part in parts):
        return not any(new.get(part) for part in parts)
    return all(new.get(part, [])[: len(old.get(part, []))] == old.get(part, []) for part in parts)


def _with_affinity(made: Json, old: Json) -> Json:
    now, before = made.get("affinity", {}), old.get("affinity", {})
    if same(now.get("nodeAffinity"), before.get("nodeAffinity")):
        return made
    affinity = {name: one for name, one in now.items() if name != "nodeAffinity"}
    if "nodeAffinity" in before:
        affinity["nodeAffinity"] = before["nodeAffinity"]
    if affinity or "affinity" in old:
        return {**made, "affinity": affinity}
    return {name: one for name, one in made.items() if name != "affinity"}


def _taking(target: Json, source: Json, names: Sequence[str]) -> Json:
    """The target with these fields as they are in the source."""
    kept = {name: value for name, value in target.items() if name not in names}
    return kept | {name: source[name] for name in names if name in source}


def difference(old: Json, new: Json, struct: str) -> str:
    """Both as lines of JSON, what differs marked."""
    # The first two lines would name files.
    return "".join(list(difflib.unified_diff(_lines(old, struct), _lines(new, struct)))[2:])


def _lines(value: Json, struct: str) -> list[str]:
    printed = json.dumps(json.loads(printing.text(value, struct)), indent=1, ensure_ascii=False)
    return [f"{line}\n" for line in printed.split("\n")]


# ``pods/ephemeralcontainers``: containers for debugging are added to a pod; none is changed or removed.

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


def check_ephemeral(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    """The rules of any pod, and that what there was is still there."""
    if template.MIRROR in old["metadata"].get("annotations", {}):
        return [forbidden("[]", "static pods do not support ephemeral containers")]
    return [
        *metadata.check_meta_update(new, old),
        *template.check_pod(new),
        *check_annotations(new, old),
        *_check_kept(new["spec"].get("ephemeralContainers", ()), old["spec"].get("ephemeralContainers", ())),
    ]


def _check_kept(new: Sequence[Json], old: Sequence[Json]) -> Iterator[Violation]:
    by_name = {one["name"]: one for one in new}
    for one in old:
        words = f"existing ephemeral containers {quoted(one['name'])} may not be"
        if one["name"] not in by_name:
            yield forbidden(_FIELD, f"{words} removed\n")
        elif not same(one, by_name[one["name"]]):
            shown = difference(one, by_name[one["name"]], "EphemeralContainer")
            yield forbidden(_FIELD, f"{words} changed\n{shown}")
