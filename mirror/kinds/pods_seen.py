"""What a kind says of the pods of its objects (D22, D24). Part of ``base.Kind``.

Not here: what goes along with them (``dependencies``), and how far an object is (``base.Progress``).
"""

from __future__ import annotations

from typing import Protocol

from mirror.kinds.pod_roles import PodRoles
from mirror.kube.objects import Object
from mirror.kube.resources import Resource


class KindWithPods(Protocol):
    """See ``base.Kind``. Objects may hold anything, as there."""

    # -- as its status has them ----------------------------------------------------------------------------------------

    @property
    def counts_pods(self) -> bool:
        """Whether it is pods that ``Progress`` counts: of some kinds it is Jobs, of others nothing."""
        ...

    @property
    def counts_ready(self) -> bool:
        """Whether its status tells how much of what should run is ready; else both questions below are False."""
        ...

    def has_unready_pods(self, found: Object) -> bool:
        """Whether some of its pods should run and are not ready; False where its status does not tell."""
        ...

    def lacks_pods(self, found: Object) -> bool:
        """Whether it should have pods by now and has none; False where its status does not tell."""
        ...

    def is_unstarted(self, found: Object) -> bool:
        """Whether its controller has not begun it, of one that ``lacks_pods``."""
        ...

    # -- a mirror's, on its worker -------------------------------------------------------------------------------------

    def pod_selectors(self, mirror: Object) -> tuple[str, ...]:
        """The label selectors of a mirror's pods there, that of most first; whose they are is looked at afterwards."""
        ...

    @property
    def knows_pods(self) -> bool:
        """Whether anything says which pods are a mirror's."""
        ...

    @property
    def pod_index(self) -> str:
        """The label and annotation of a pod that hold its index; empty where pods have none."""
        ...

    @property
    def pod_roles(self) -> PodRoles:
        """How pods say what part of the object they are."""
        ...

    @property
    def pod_owners(self) -> tuple[Resource, ...]:
        """What may stand between a mirror and its pods, those that control pods first; none: it controls them."""
        ...
