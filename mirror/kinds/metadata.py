"""Labels and annotations of a mirror, as every kind has them (D4)."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from mirror.kinds.base import MirrorTransform
from mirror.kinds.carried import without
from mirror.kinds.queueing import NOTES
from mirror.kube.objects import Object
from mirror.model import names

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


def _any(key: str, globs: tuple[str, ...]) -> bool:
    return bool(globs) and any(fnmatchcase(key, glob) for glob in globs)  # mostly there are none
