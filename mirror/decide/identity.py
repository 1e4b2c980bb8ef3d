"""Whose is an object on a worker that has a source's name? Pure (D1).

Used by ``controllers`` wherever an object on a worker is looked at. What decides is the uid that is recorded in the
source's status, which the ``edit`` role cannot write; before one is recorded, our labels. Annotations never do, but
for one case: a mirror whose label names another source is kept where its note shows that it was made of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mirror.kube.objects import Object
from mirror.model import names


class Identity(Enum):
    """What an object on a worker is to a source of its name."""

    OURS = "ours"
    """Its mirror: the recorded one, or the labelled one where none is recorded."""
    UNLABELED = "unlabeled"
    """Its mirror, whose labels were removed or changed: they are put back, and it is never deleted for it."""
    REPLACED = "replaced"
    """Another object than the recorded one, with the labels of this source."""
    NAMESAKE = "namesake"
    """The mirror of another source."""
    FOREIGN = "foreign"
    """Not ours."""


def identify(  # noqa: PLR0913 - whose an object is, is a matter of all that both say
    uid: str,
    labels: Mapping[str, str],
    *,
    origin: str,
    source_uid: str,
    recorded_uid: str | None,
    management_uid: str = "",
    is_source: bool = False,
) -> Identity:
    """Judge one object.

    Args:
        uid: of the object.
        labels: of the object (``own_labels``).
        origin: the management cluster's.
        source_uid: of the source that has this name.
        recorded_uid: of the mirror that was created for this source, where it is known.
        management_uid: of the management cluster, where its origin does not say it.
        is_source: it asks to be mirrored itself, which no mirror does, whatever labels it has: on the management
            cluster, or on a worker with a manager of its own.
    """
    is_labeled = has_labels(labels, origin=origin, management_uid=management_uid)
    is_of_source = is_labeled and labels.get(names.SOURCE_UID) == source_uid
    if recorded_uid and uid == recorded_uid:
        return Identity.OURS if is_of_source else Identity.UNLABELED
    if is_source:
        return Identity.FOREIGN
    if is_of_source:
        return Identity.REPLACED if recorded_uid else Identity.OURS
    return Identity.NAMESAKE if is_labeled else Identity.FOREIGN


def own_labels(found: Object) -> Mapping[str, str]:
    """Its labels; none where a controller owns it, as then they are copies: a mirror is made without an owner (D4).

    Tekton gives a PipelineRun's labels to its TaskRuns, kuberay a RayJob's to its RayCluster.
    """
    return {} if found.is_controlled else found.labels


def has_labels(labels: Mapping[str, str], *, origin: str, management_uid: str = "") -> bool:
    """Whether an object has both labels of a mirror of this management cluster: without them it is not ours.

    Nor is one of another management cluster, which has been given the same origin by mistake.
    """
    is_ours = labels.get(names.ORIGIN) == origin and bool(labels.get(names.SOURCE_UID))
    return is_ours and not is_of_another_cluster(labels, management_uid)


def is_of_another_cluster(labels: Mapping[str, str], management_uid: str) -> bool:
    """Whether an object says that another management cluster made it; older managers' mirrors say nothing."""
    return bool(management_uid) and labels.get(names.MANAGEMENT_UID, management_uid) != management_uid
