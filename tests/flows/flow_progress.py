"""What progress that goes along with a move promises, at each write to a mirror (D14, decision 0022)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from doubles.managers import conditions, placed
from flow_invariants import Invariants
from flow_world import MANAGER, FlowWorld

from mirror.batch import indexes
from mirror.embedded.apiserver.messages import Request
from mirror.model import names
from mirror.model.losses import OnMirrorLoss
from mirror.model.moves import Moves, parse_moves
from mirror.planes.api import Json

_decoded = msgspec.json.Decoder(dict[str, Any]).decode


class ProgressLaws(Invariants):
    """A mirror is seeded before it runs, never while it runs, and nothing counts twice."""

    seeded = 0
    """Mirrors that were resumed with what their source had counted."""

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if old is not None and new is not None and request.peer == MANAGER:
            source = self.sources.get(self._source_of.get(uid, ""))
            if (old.get("status") or {}) != (new.get("status") or {}):
                self._look_at_seed(worker, old, new, source)
            elif old["spec"].get("suspend") and not new["spec"].get("suspend"):
                self._look_at_resume(worker, old, new, source)
        super()._look_at_mirror(worker, uid, old, new, request)

    def _look_at_seed(self, worker: str, old: Json, new: Json, source: Json | None) -> None:
        name, before, after = new["metadata"]["name"], old.get("status") or {}, new["status"]
        if _state(old) != names.SEED_PENDING or not old["spec"].get("suspend"):
            self._wrong(f"D14: the status of {name} on {worker} was written although it was not held for that")
        if before.get("startTime") or before.get("active"):
            self._wrong(f"D14: {name} on {worker} was seeded although it has run: {before}")
        if source is None:
            return
        for counter in ("succeeded", "failed"):
            self.begun_with[new["metadata"]["uid"]][counter] = _number(after, counter)
            most = max(_number(before, counter), _number(source["status"], counter))
            if after.get("completedIndexes") and counter == "succeeded":
                most = indexes.count(_indexes(after) or ())
            if _number(after, counter) > most:
                self._wrong(f"D14: {name} on {worker} was seeded with {counter} {after}, its source has {most}")

    def _look_at_resume(self, worker: str, old: Json, new: Json, source: Json | None) -> None:
        name, after = new["metadata"]["name"], new.get("status") or {}
        if _state(old) != names.SEED_PENDING or _state(new) == names.SEED_REFUSED or source is None:
            return
        stored, completions = source["status"], source["spec"].get("completions") or 1
        if conditions(source).get("Suspended") != "WorkerLost":
            return
        self.seeded += 1
        is_less = _number(after, "failed") < _number(stored, "failed")
        if source["spec"].get("completionMode") == "Indexed":
            wanted = indexes.read(str(stored.get("completedIndexes") or ""), completions)
            is_less |= bool(indexes.minus(wanted, indexes.read(str(after.get("completedIndexes") or ""), completions)))
        elif source["spec"].get("completions") is not None:
            is_less |= _number(after, "succeeded") < min(completions, _number(stored, "succeeded"))
        if is_less:
            self._wrong(f"D14: {name} on {worker} was resumed with {after}, and its source has counted {stored}")


def _state(mirror: Json) -> str | None:
    return (mirror["metadata"].get("annotations") or {}).get(names.SEED)


def _number(status: Json, name: str) -> int:
    return int(status.get(name) or 0)


def _indexes(status: Json) -> indexes.Intervals | None:
    return indexes.read(str(status.get("completedIndexes") or ""), 1_000_000)


class DrainingLaws(ProgressLaws):
    """What leaves a worker that is drained is stored, and gone, before it is recorded elsewhere."""

    drained = 0
    """Records that went elsewhere like this."""

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        source = self.sources.get(self._source_of.get(uid, ""))
        is_deleted = new is None or ("deletionTimestamp" in new["metadata"]) > (
            "deletionTimestamp" in (old or new)["metadata"]
        )
        if old is not None and is_deleted and request.peer == MANAGER and is_leaving(source, worker):
            assert source is not None
            self._look_at_leaving(worker, old, source)
        super()._look_at_mirror(worker, uid, old, new, request)

    def _look_at_leaving(self, worker: str, mirror: Json, source: Json) -> None:
        name, last, stored = mirror["metadata"]["name"], mirror.get("status") or {}, source["status"]
        if not mirror["spec"].get("suspend") or last.get("active") or last.get("terminating"):
            self._wrong(f"D14: {name} was deleted on {worker}, which is drained, and has not stopped: {last}")
        for counter in ("succeeded", "failed"):
            if _number(last, counter) > _number(stored, counter) and source["spec"].get("completionMode") != "Indexed":
                self._wrong(f"D14: {name} left {worker} with {last}, and {stored} is stored")
        if indexes.minus(_indexes(last) or (), _indexes(stored) or ()) and not _is_scaled(source):
            self._wrong(f"D14: {name} left {worker} with {last}, and {stored} is stored")

    def _look_at_drain(self, uid: str, before: str, new: Json) -> None:
        """A record that goes elsewhere because its worker is drained."""
        self.drained += 1
        name = new["metadata"]["name"]
        if any(worker == before for worker, _ in self.live[uid]):
            self._wrong(f"D14: {name} left {before}, which is drained, and has a mirror there: {self.live[uid]}")
        if new["status"].get("active") or "FailureTarget" in conditions(new):
            self._wrong(f"D14: {name} left {before}, which is drained, and its status says {new['status']}")


class StartOverLaws(DrainingLaws):
    """What starts over where its mirror vanished was asked to, and nothing of it runs there (D11)."""

    started_over = 0

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self._gone_by_us: dict[str, str] = {}
        """Uids of mirrors that the manager has deleted, by the uid of their source: the last one of each."""

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_mirror(worker, uid, old, new, request)
        if request.peer == MANAGER and old is not None and (new is None or "deletionTimestamp" in new["metadata"]):
            self._gone_by_us[self._source_of.get(uid, "")] = uid

    def _look_at_vanishing(self, uid: str, old: Json, new: Json) -> None:
        """D11: what we have deleted ourselves has not vanished."""
        recorded = next((one["message"] for one in old["status"]["conditions"] if one["type"] == names.MIRRORED), None)
        is_lost = conditions(new).get("Failed") == "MirrorLost" and "Failed" not in conditions(old)
        starts_over = moves_of(new).count > moves_of(old).count and moves_of(new).is_start_over
        if recorded is not None and recorded == self._gone_by_us.get(uid) and (is_lost or starts_over):
            self._wrong(f"D11: {new['metadata']['name']} has lost a mirror that the manager had deleted")

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if old is not None and new is not None and request.peer == MANAGER and placed(old) == placed(new):
            if conditions(old):
                self._look_at_vanishing(uid, old, new)
            before, after = moves_of(old), moves_of(new)
            if after.count > before.count and after.is_start_over:
                self._look_at_start_over(uid, str(placed(new)), old, new)
        super()._look_at_source(uid, old, new, request)

    def _look_at_start_over(self, uid: str, worker: str, old: Json, new: Json) -> None:
        self.started_over += 1
        name, namespace = new["metadata"]["name"], new["metadata"]["namespace"]
        if (new["metadata"].get("annotations") or {}).get(names.ON_MIRROR_LOSS) != OnMirrorLoss.RECREATE:
            self._wrong(f"D11: {name} starts over on {worker}, and nobody asked for that")
        if {"FailureTarget", "SuccessCriteriaMet"} & conditions(old).keys():
            self._wrong(f"D11: {name} starts over although its end was decided")
        if any(where == worker for where, _ in self.live[uid]):
            self._wrong(f"D11: {name} starts over on {worker}, and has a mirror there: {self.live[uid]}")
        phases = [_phase(pod) for pod in self._pods_named(worker, namespace, name)]
        running = [phase for phase in phases if phase not in ("Succeeded", "Failed")]
        if running:
            self._wrong(f"D11: {name} starts over on {worker}, and has pods there: {running}")

    def running(self, worker: str, name: str, namespace: str = "default") -> dict[str, str]:
        """The pods that run for a Job of this name, and the uid of the Job that has each; of an orphan nothing."""
        return {
            pod["metadata"]["name"]: (pod["metadata"].get("ownerReferences") or [{}])[0].get("uid", "")
            for pod in self._pods_named(worker, namespace, name)
            if _phase(pod) == "Running"
        }

    def look_beside_orphans(self, worker: str, name: str, left: Collection[str]) -> None:
        """``left``: pods that a mirror of this name had when it went: none may run beside them (D2)."""
        running = self.running(worker, name)
        others = [pod for pod, owner in running.items() if owner]
        if others and not running.keys().isdisjoint(left):
            self._wrong(f"D2: {name} runs on {worker} as {others} beside what its mirror before has left there")

    def _pods_named(self, worker: str, namespace: str, name: str) -> list[Json]:
        """The pods that were made for a Job of this name."""
        found = [_decoded(one.raw) for one in self.world.planes[worker].storage.records("pods", namespace)]
        return [one for one in found if (one["metadata"].get("labels") or {}).get("job-name") == name]


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def moves_of(source: Json | None) -> Moves:
    """What a source says of its moves."""
    listed = ((source or {}).get("status") or {}).get("conditions") or ()
    return next((parse_moves(one["message"]) for one in listed if one["type"] == names.MOVED), Moves())


def drains_of(source: Json | None) -> int:
    """How many of those left a drained worker."""
    listed = ((source or {}).get("status") or {}).get("conditions") or ()
    return next((int(one["message"].split()[0]) for one in listed if one["type"] == names.DRAINED), 0)


def is_leaving(source: Json | None, worker: str) -> bool:
    """Whether it is stored that a mirror goes since its worker is drained."""
    return conditions(source).get("Suspended") == "WorkerDrained" and placed(source) == worker


def _is_scaled(source: Json) -> bool:
    return bool(source["spec"].get("completions") == source["spec"].get("parallelism"))
