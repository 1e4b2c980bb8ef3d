"""Labels and annotations of a mirror, as every kind has them (D4)."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from mirror.kinds.base import BadAnnotation, Kind, MirrorTransform
from mirror.kinds.carried import Carried, without
from mirror.kinds.queueing import NOTES
from mirror.kube.objects import Object
from mirror.model import names

_LABELS = "labels"
"""The part of a mirror that is its labels, of every kind."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def mirror_labels(source: Object, transform: MirrorTransform, *, generated: Collection[str] = ()) -> dict[str, str]:
    """The source's without those that its cluster ``generated``, a queue's notes, what is to be stripped, and ours."""

    def drop(key: str) -> bool:
        is_local = key in generated or key in NOTES or key.startswith(names.PREFIX)
        return is_local or _any(key, transform.strip_labels)

    return (
        without(source.metadata.labels, drop) | dict(transform.set_labels) | transform.own_labels(source.metadata.uid)
    )


def mirror_annotations(source: Object, transform: MirrorTransform) -> dict[str, str]:
    """The source's, but kubectl's copy of the manifest, a queue's notes, what is to be stripped, and ours."""

    def drop(key: str) -> bool:
        is_local = key == LAST_APPLIED or key in NOTES or key.startswith(names.PREFIX)
        return is_local or _any(key, transform.strip_annotations)

    return without(source.metadata.annotations, drop) | dict(transform.set_annotations)


def is_made_of(kind: Kind, source: Object, mirror: Object, transform: MirrorTransform) -> bool:
    """Whether a mirror's note shows that it was made of this source: by the labels that it got, one of them its uid.

    The note proves nothing once the source has other labels.
    """
    try:
        body = kind.mirror_body(source, namespace=mirror.metadata.namespace, transform=transform)
    except BadAnnotation:
        return False
    annotations: dict[str, str] = body["metadata"].get("annotations") or {}
    wanted = Carried.of_text(annotations.get(names.CARRIED))
    noted = Carried.of_text(mirror.annotations.get(names.CARRIED))
    labels = noted.parts.get(_LABELS)
    return noted.version > 0 and labels is not None and labels == wanted.parts.get(_LABELS)


def _any(key: str, globs: tuple[str, ...]) -> bool:
    return bool(globs) and any(fnmatchcase(key, glob) for glob in globs)  # mostly there are none
