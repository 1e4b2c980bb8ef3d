"""``page.visiting.Visitors`` without a cluster: tokens, what each may, and what is inside one mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mirror.model.keys import SourceKey
from mirror.page.visiting import Bodies, LogOut, Refused, Visitor

_METADATA = {"name": "train-resnet-large", "namespace": "research", "uid": "5b0c7c1e", "labels": {"team": "research"}}
_SPEC = {
    "completions": 64,
    "parallelism": 8,
    "template": {
        "spec": {
            "containers": [
                {"name": "train", "image": "registry.example.com/train:7", "resources": {"limits": {"gpu": "1"}}}
            ],
            "restartPolicy": "Never",
        }
    },
}
PODS: dict[str, Any] = {
    "items": [
        {
            "metadata": {"name": "train-resnet-large-0-x7k2p"},
            "spec": {"nodeName": "gpu-node-3", "containers": [{"name": "train"}, {"name": "metrics"}]},
            "status": {
                "phase": "Running",
                "startTime": "2026-11-21T11:20:00Z",
                "containerStatuses": [{"name": "train", "ready": True, "restartCount": 2}, {"name": "metrics"}],
            },
        },
        {
            "metadata": {"name": "train-resnet-large-1-q9d4m"},
            "spec": {"containers": [{"name": "train"}]},
            "status": {
                "phase": "Pending",
                "containerStatuses": [
                    {
                        "name": "train",
                        "image": "train:7",
                        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}},
                    }
                ],
            },
        },
    ]
}
EVENTS: dict[str, Any] = {
    "items": [
        {"type": "Normal", "reason": "SuccessfulCreate", "message": "Created pod: train-resnet-large-0-x7k2p",
         "involvedObject": {"kind": "Job", "name": "train-resnet-large"}, "lastTimestamp": "2026-11-21T11:20:00Z"},
        {"type": "Warning", "reason": "BackOff", "message": "Back-off pulling image train:7", "count": 12,
         "involvedObject": {"kind": "Pod", "name": "train-resnet-large-1-q9d4m"},
         "lastTimestamp": "2026-11-21T11:58:00Z"},
    ]
}  # fmt: skip
BODIES = Bodies(
    source={"apiVersion": "batch/v1", "kind": "Job", "metadata": _METADATA,
            "spec": {**_SPEC, "managedBy": "jobmirror.io/controller", "ttlSecondsAfterFinished": 600}},
    mirror={"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {**_METADATA, "uid": "9c1d7a20", "labels": {"team": "research", "jobmirror.io/origin": "7f3c"}},
            "spec": {**_SPEC, "parallelism": 4}},
    worker="gpu-frankfurt",
)  # fmt: skip


class PretendedVisitors:
    """Give ``tokens`` rights: verb, kind, namespace; an empty namespace means all."""

    kinds = ("Job",)

    def __init__(self, *, has_inside: bool = True) -> None:
        self.has_inside = has_inside
        self.tokens: dict[str, set[tuple[str, str, str]]] = {}
        self.shown: list[str] = []
        """Tokens that were looked at."""
        self.pods, self.events, self.bodies_found = PODS, EVENTS, BODIES
        self.log_pieces = [b"epoch 1 loss 0.71\n", b"epoch 2 loss 0.64\n", "<b>not bold</b> \u00e4\n".encode()]
        self.log_goes_on = asyncio.Event()
        self.refusal: Refused | None = None

    async def visitor(self, token: str, peer: str) -> Visitor:
        self.shown.append(token)
        if token not in self.tokens:
            raise Refused(401, "the management cluster does not accept this token; it may be over")
        return Visitor(f"user-of-{token}", token, peer)

    async def may(self, visitor: Visitor, verb: str, key: SourceKey) -> bool:
        rights = self.tokens[visitor.token]
        return bool({(verb, key.kind, key.namespace), (verb, key.kind, "")} & rights)

    async def ask(self, visitor: Visitor, key: SourceKey, what: str) -> Mapping[str, Any]:
        if self.refusal is not None:
            raise self.refusal
        return {"pods": self.pods, "events": self.events}[what]

    async def bodies(self, visitor: Visitor, key: SourceKey) -> Bodies:
        return self.bodies_found

    async def log(self, visitor: Visitor, key: SourceKey, wanted: Mapping[str, str], out: LogOut) -> None:
        if self.refusal is not None:
            raise self.refusal
        pod = wanted.get("pod") or "train-resnet-large-0-x7k2p"
        await out.begin({"X-Jobmirror-Pod": pod, "X-Jobmirror-Worker": "gpu-frankfurt"})
        for piece in self.log_pieces:
            await out.write(piece)
        await self.log_goes_on.wait()
        await out.write(b"the end\n")
