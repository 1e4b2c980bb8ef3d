"""What a mirror has that its source has not, and the reverse; and what a Job needs that is not copied with it. Pure.

Shown by ``mirror diff`` and by ``access``, also for a Job that does not exist yet. What is carried is decided in
``body``; this module only compares, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from mirror.kinds.base import BadDraft, MirrorTransform
from mirror.kinds.batch_job.body import mirror_body
from mirror.kinds.batch_job.needs import cautions
from mirror.kinds.queueing import POD_NOTES
from mirror.kinds.report import OURS, PENDING, STRIPPED, WORKER, Caution, Difference, Report
from mirror.kube.amounts import exceeds
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import JUNK, Object, decode_object
from mirror.kube.resources import JOBS
from mirror.model import names

MOST_DIFFERENCES = 200
MOST_DRAFT_VALUES = 20_000
"""Lists, members and items of a Job that no API server has looked at."""
MOST_DEPTH = 40
LONGEST_VALUE = 1_000


class _DraftMeta(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _DraftPod(msgspec.Struct, rename="camel"):
    containers: list[dict[str, Any]]
    init_containers: list[dict[str, Any]] | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None


class _DraftTemplate(msgspec.Struct):
    spec: _DraftPod
    metadata: _DraftMeta | None = None


class _DraftSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, Any]] | None = None


class _DraftSpec(msgspec.Struct, rename="camel"):
    template: _DraftTemplate
    selector: _DraftSelector | None = None
    managed_by: str | None = None
    suspend: bool | None = None
    manual_selector: bool | None = None


class _Type(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _Draft(msgspec.Struct, rename="camel"):
    """As much of a Job's shape as comparing relies on, where no API server has looked at it."""

    metadata: _DraftMeta
    spec: _DraftSpec


_draft, _type = msgspec.json.Decoder(_Draft), msgspec.json.Decoder(_Type)


def draft(raw: bytes) -> Object:
    """A Job that no API server has seen yet, from its JSON.

    Raises:
        BadDraft: it is no Job.
    """
    if exceeds(raw, MOST_DRAFT_VALUES):
        raise BadDraft(f"this is no Job: it has more than {MOST_DRAFT_VALUES} values")
    try:
        _check_type(_type.decode(raw))  # first: an object of another version may lack all else
        _draft.decode(raw)
        read = decode_object(raw)
    except (*JUNK, BadAnswer) as error:
        where = f": {error}" if isinstance(error, msgspec.DecodeError) else ""
        raise BadDraft(f"this is no Job{where}") from None
    return read


def _check_type(found: _Type) -> None:
    """Raises BadDraft."""
    if found.kind != JOBS.kind:
        raise BadDraft(f"this is no Job: kind is {found.kind or 'missing'}")
    if not found.api_version:
        raise BadDraft(f"this is no Job: apiVersion is missing; use {JOBS.api_version}")
    if found.api_version != JOBS.api_version:
        raise BadDraft(f"this is no Job: apiVersion {found.api_version} is not supported; use {JOBS.api_version}")


class _Missing:
    """There is nothing at this place."""


_MISSING = _Missing()
_GENERATED = "each cluster makes its own"
_BECAUSE: tuple[tuple[str, str], ...] = (
    (r"spec\.managedBy", "the worker's own Job controller runs the mirror"),
    (r"spec\.ttlSecondsAfterFinished", "it counts for the source; the mirror goes with it"),
    (r"spec\.suspend", "a mirror is there once its source may run"),
    (r"spec\.selector.*", _GENERATED),
    (r".*labels\[(batch\.kubernetes\.io/)?(controller-uid|job-name)\]", _GENERATED),
    (r"metadata\.ownerReferences.*", "owners are objects of the management cluster"),
    (r"metadata\.finalizers.*", "they would keep the mirror from going with its source"),
    (r"metadata\.namespace", "the worker's namespace prefix"),
    (r"metadata\.annotations\[kubectl\.kubernetes\.io/last-applied-configuration\]", "a note of kubectl's own"),
    (rf"metadata\.(labels|annotations)\[{re.escape(names.PREFIX)}.*\]", "a note of jobmirror's own"),
    (
        rf".*(labels|annotations)\[({'|'.join(map(re.escape, sorted(POD_NOTES)))})\]",
        "a note of the queue of one cluster",
    ),
)


def before(source: Object, *, transform: MirrorTransform, managed_by: str = names.DEFAULT_MANAGED_BY) -> Report:
    """What will differ once this Job is mirrored; it need not exist yet."""
    body = mirror_body(source, namespace=source.metadata.namespace, transform=transform)
    body["spec"].setdefault("suspend", False)
    return _report(source, body, body, transform, cautions(source, managed_by, transform.dependencies))


def between(
    source: Object,
    mirror: Object,
    *,
    transform: MirrorTransform,
    managed_by: str = names.DEFAULT_MANAGED_BY,
) -> Report:
    """What differs now between a source and its mirror."""
    expected = mirror_body(source, namespace=mirror.metadata.namespace, transform=transform)
    return _report(source, expected, _tree(mirror), transform, cautions(source, managed_by, transform.dependencies))


def _report(
    source: Object,
    expected: Mapping[str, Any],
    there: Mapping[str, Any],
    transform: MirrorTransform,
    told: tuple[Caution, ...],
) -> Report:
    found: list[Difference] = []
    expected = {"metadata": expected["metadata"], "spec": expected["spec"]}
    there = {"metadata": there["metadata"], "spec": there["spec"]}
    for path, here, want, have in _walk("", _tree(source), expected, there, 0):
        if _is_same(path, here, have):
            continue
        if len(found) >= MOST_DIFFERENCES:
            return Report(differences=tuple(found), cautions=told, is_cut=True)
        found.append(_difference(path, here, want, have, transform))
    return Report(differences=tuple(found), cautions=told)


def _difference(path: str, here: object, want: object, have: object, transform: MirrorTransform) -> Difference:
    kind, because = _judge(path, here, want, have, transform)
    return Difference(path=path[:LONGEST_VALUE], kind=kind, source=_shown(here), mirror=_shown(have), because=because)


def _judge(path: str, here: object, want: object, have: object, transform: MirrorTransform) -> tuple[str, str]:
    """The kind of a difference, and why it is there."""
    known = next((why for shape, why in _BECAUSE if re.fullmatch(shape, path, re.DOTALL)), "")
    if want == have or known:
        kind = STRIPPED if have is _MISSING else OURS
        return kind, known or _setting(path, transform)
    if want is _MISSING:
        return WORKER, "set on the worker, by its defaults or its admission"
    if have is _MISSING:
        return PENDING, "missing there: removed on the worker, or about to be sent"
    return PENDING, "changed on the worker, or about to be sent"


def _setting(path: str, transform: MirrorTransform) -> str:
    directive = re.fullmatch(r"spec\.template\.spec\.(nodeSelector|tolerations)\b.*", path, re.DOTALL)
    if directive is not None:
        return "settings mirrors.strip and mirrors.replace"
    found = re.fullmatch(r"metadata\.(labels|annotations)\[(.*)\]", path, re.DOTALL)
    if found is None:
        return "prepared for the worker"
    field, key = found.groups()
    globs = transform.strip_labels if field == "labels" else transform.strip_annotations
    return f"setting mirrors.{'strip' if any(fnmatchcase(key, glob) for glob in globs) else 'set'}.{field}"


def _walk(
    path: str, here: object, want: object, have: object, depth: int
) -> Iterator[tuple[str, object, object, object]]:
    """Every place where source and mirror differ, the highest where one of them has nothing at all."""
    if here == have:
        return
    if depth < MOST_DEPTH and isinstance(here, list) and isinstance(have, list):
        here, want, have = (_keyed(one) for one in (here, want, have))
    if depth >= MOST_DEPTH or not (isinstance(here, Mapping) and isinstance(have, Mapping)):
        yield path, here, want, have
        return
    wanted = want if isinstance(want, Mapping) else {}
    for key in dict.fromkeys((*here, *have)):
        below = _join(path, str(key))
        yield from _walk(below, here.get(key, _MISSING), wanted.get(key, _MISSING), have.get(key, _MISSING), depth + 1)


def _keyed(found: object) -> object:
    """A list as a mapping: by the names of its elements where each has one of its own, else by place."""
    if not isinstance(found, list):
        return found
    own = [one.get("name") if isinstance(one, Mapping) else None for one in found]
    if all(isinstance(name, str) for name in own) and len(set(own)) == len(own):
        return {f"[{name}]": one for name, one in zip(own, found, strict=True)}
    return {f"[{place}]": one for place, one in enumerate(found)}


def _join(path: str, key: str) -> str:
    if key.startswith("["):
        return path + key
    if "." in key or "/" in key or path.endswith(("labels", "annotations")):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _is_same(path: str, here: object, have: object) -> bool:
    """Nothing and an empty something are the same; so are no suspend and false."""
    empty: tuple[object, ...] = (_MISSING, None, {}, [], "")
    if path == "spec.suspend":
        return bool(here is True) == bool(have is True)
    return here in empty and have in empty


def _tree(found: Object) -> dict[str, Any]:
    """What can be compared of an object."""
    metadata = found.metadata
    own: dict[str, Any] = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "labels": dict(found.labels),
        "annotations": dict(found.annotations),
    }
    if metadata.owner_references:
        own["ownerReferences"] = [msgspec.to_builtins(one) for one in metadata.owner_references]
    if metadata.finalizers:
        own["finalizers"] = list(metadata.finalizers)
    return {"metadata": own, "spec": found.spec_dict()}


def _shown(value: object) -> str | None:
    if value is _MISSING:
        return None
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
