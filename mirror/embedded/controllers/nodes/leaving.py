"""What is written about pods that have to leave because of their nodes, or for want of one.

Used by ``lifecycle``, which decides who leaves. A conflict is an error here: the key is tried again.
"""

from __future__ import annotations

from mirror.batch import times
from mirror.embedded.controllers.client import Api, Json
from mirror.embedded.controllers.kubelet.podspec import FINAL
from mirror.kube.errors import NotFound
from mirror.kube.resources import PODS
from mirror.runtime.clock import Clock


class Leaving:
    """Writes; all methods raise KubeError, except for pods that are gone."""

    def __init__(self, api: Api, *, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def fail(self, pod: Json, why: tuple[str, str] | None = None) -> None:
        """It has failed, because of what disrupted it if anything did, unless it has ended already."""
        if (pod.get("status") or {}).get("phase") in FINAL:
            return
        conditions = {} if why is None else {"conditions": [self._disruption(pod, why)]}
        await self.patch_status(pod, {"phase": "Failed"} | conditions)

    async def disrupt(self, pod: Json, why: tuple[str, str]) -> None:
        """Say once why it is going to be deleted."""
        told: list[Json] = (pod.get("status") or {}).get("conditions") or []
        if not any(one.get("type") == "DisruptionTarget" and one.get("reason") == why[0] for one in told):
            await self.patch_status(pod, {"conditions": [self._disruption(pod, why)]})

    async def patch_status(self, pod: Json, status: Json) -> bool:
        """Whether it was there to be changed."""
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._api.strategic(PODS, meta["name"], patch, namespace=meta["namespace"], subresource="status")
        except NotFound:
            return False
        return True

    async def delete(self, pod: Json, *, grace_seconds: int | None = None) -> None:
        """Delete this very pod."""
        meta = pod["metadata"]
        try:
            await self._api.delete(
                PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], grace_seconds=grace_seconds
            )
        except NotFound:
            return

    def _disruption(self, pod: Json, why: tuple[str, str]) -> Json:
        condition: Json = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": why[0],
            "message": why[1],
            "lastTransitionTime": times.of(self._clock.now()),
        }
        if generation := pod["metadata"].get("generation"):
            condition["observedGeneration"] = generation
        return condition
