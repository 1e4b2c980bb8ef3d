"""Random edits of what is ours: users with the role ``edit``, people and controllers on workers, mutating admission.

``Everybody`` with what a real installation meets beside faults. Operators and failovers are in
``flow_machine_interference``.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import msgspec
from admission import CHANGES
from flow_machine import KINDS, WORKER, Everybody
from flow_machine_base import NAMES, WAITS
from flow_ownership import OwnershipInvariants
from flow_settled_replicas import settle
from flow_world import ANOTHER_CLUSTER, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from replica_world import MANAGEMENT_PREFIX, PREFIXES, ReplicaWorld
from replicas import ProcessLoop

from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.targets import INSIDER
from mirror.model import names
from mirror.planes.api import Json

RESTORED = Request("PUT", "", peer=INSIDER)
"""In place of the request that a restore of etcd is not."""
CLUSTERS = st.sampled_from(("east", "west", "management"))
"""Where mirrors are."""
SOON = st.sampled_from((0.0005, 0.01, 0.5, 3.0))
PREFIX = st.sampled_from(PREFIXES)
OF_A_SOURCE = (
    names.MIRROR_UID,
    names.ASSIGNED_WORKER,
    names.WAITING_BECAUSE,
    names.HELD,
    names.CARRIED,
    names.WORKER_ORDER,
    names.SPREAD_BY,
)
OF_A_MIRROR = (names.ORIGIN, names.SOURCE_UID)
EDITS: dict[str, Json] = {
    "label": {"metadata": {"labels": {"team": "z"}}},
    "label removed": {"metadata": {"labels": {"team": None}}},
    "annotation": {"metadata": {"annotations": {"example.com/note": "edited"}}},
    "suspend": {"spec": {"suspend": True}},
    "resume": {"spec": {"suspend": False}},
    "parallelism": {"spec": {"parallelism": 2}},
    "time to live": {"spec": {"ttlSecondsAfterFinished": 1}},
    "note removed": {"metadata": {"annotations": {names.CARRIED: None}}},
    "note of nonsense": {"metadata": {"annotations": {names.CARRIED: '{"suspend":["x"],"labels":[]}'}}},
    "note of nothing": {"metadata": {"annotations": {names.CARRIED: "{}"}}},
}
TEMPLATES: dict[str, Json] = {
    "tolerations": {"spec": {"tolerations": [{"key": "user", "operator": "Exists"}]}},
    "no tolerations": {"spec": {"tolerations": None}},
    "node selector": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}},
    "label": {"metadata": {"labels": {"team": "user"}}},
    "annotation": {"metadata": {"annotations": {"example.com/injected": "no"}}},
}
WITH_ALL_PARTS: Json = {
    "metadata": {"labels": {"team": "user"}, "annotations": {"example.com/injected": "no"}},
    "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "user", "operator": "Exists"}]},
}
"""What admission changes, too."""


class Edits(Everybody):
    """All that ``Everybody`` does, and all that others do to what is ours."""

    WORLD: ClassVar[type[ReplicaWorld]] = ReplicaWorld
    LOOP: ClassVar[type[ProcessLoop]] = ProcessLoop
    world: ReplicaWorld
    laws: OwnershipInvariants

    def __init__(self) -> None:
        self._backups: dict[str, Json] = {}
        super().__init__()
        self._loop.on_spinning = self._on_spinning

    def _laws(self) -> OwnershipInvariants:
        return OwnershipInvariants(self.world)

    def _on_spinning(self) -> None:
        self.laws._wrong("rate: a manager goes on and on, and no time passes")

    async def _settle(self) -> None:
        await settle(self.world, self.laws)

    @initialize(prefix=PREFIX, is_own_worker=st.booleans(), has_standby=st.booleans())
    def an_operator_sets_it_up(self, prefix: str, is_own_worker: bool, has_standby: bool) -> None:
        self._do(self._set_up(prefix, is_own_worker, has_standby))

    async def _set_up(self, prefix: str, is_own_worker: bool, has_standby: bool) -> None:
        await self.world.register("west", prefix=prefix)
        if is_own_worker:
            await self.world.register("home", leads_to="management", prefix=MANAGEMENT_PREFIX)
        if has_standby:
            self.world.start_replica()
        await asyncio.sleep(1.0)

    # -- users of the management cluster -------------------------------------------------------------------------------

    @rule(name=NAMES, kind=st.sampled_from(("slow", "wide", "indexed")), is_suspended=st.booleans(), wait=WAITS)
    def a_user_creates_with_all_parts(self, name: str, kind: str, is_suspended: bool, wait: float) -> None:
        body = job(name, suspend=is_suspended, **KINDS[kind])
        template = body["spec"]["template"]
        template["metadata"]["labels"] = WITH_ALL_PARTS["metadata"]["labels"]
        template["metadata"]["annotations"] |= WITH_ALL_PARTS["metadata"]["annotations"]
        template["spec"] |= WITH_ALL_PARTS["spec"]
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(
        name=NAMES,
        key=st.sampled_from(OF_A_SOURCE),
        value=st.sampled_from((None, "true", "east", "west", "of the same name", "of another name")),
        cluster=CLUSTERS,
        wait=WAITS,
    )
    def a_user_edits_our_annotations(self, name: str, key: str, value: str | None, cluster: str, wait: float) -> None:
        if value and value.startswith("of"):
            found = [one["metadata"] for one in self.world.jobs_on(cluster)]
            uids = [one["uid"] for one in found if (one["name"] == name) == (value == "of the same name")]
            value = uids[0] if uids else None
        self._do(self._and_wait(self.world.change(name, {"metadata": {"annotations": {key: value}}}), wait))

    @rule(name=NAMES, key=st.sampled_from(OF_A_MIRROR), value=st.sampled_from((None, "x")), wait=WAITS)
    def a_user_adds_our_labels(self, name: str, key: str, value: str | None, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"metadata": {"labels": {key: value}}}), wait))

    @rule(
        name=NAMES,
        cluster=WORKER,
        is_suspended=st.booleans(),
        of=st.sampled_from(("nothing", "job of others", "source that is gone", "x")),
        wait=WAITS,
    )
    def a_user_creates_with_our_annotations(
        self, name: str, cluster: str, is_suspended: bool, of: str, wait: float
    ) -> None:
        found = [one["metadata"]["uid"] for one in self.world.jobs_on(cluster) if one["metadata"]["name"] == name]
        gone = self.laws.deleted.get(name)
        uids = {
            "job of others": found[:1],
            "source that is gone": [gone["metadata"]["uid"]] if gone else [],
            "x": ["x"],
        }
        uid = next(iter(uids.get(of, [])), "")
        body = job(name, annotations={names.MIRROR_UID: uid, names.ASSIGNED_WORKER: cluster}, suspend=is_suspended)
        body["metadata"]["labels"] = {names.ORIGIN: self.world.origin, names.SOURCE_UID: uid or "x"}
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(name=NAMES, is_suspended=st.booleans(), wait=WAITS)
    def a_user_replaces_with_a_manifest(self, name: str, is_suspended: bool, wait: float) -> None:
        """``kubectl replace``: labels and annotations are those of the manifest, ours are gone."""
        self._do(self._and_wait(self._replace(name, is_suspended), wait))

    async def _replace(self, name: str, is_suspended: bool) -> None:
        found = await self.world.source(name)
        if found is not None:
            metadata = {"name": name, "resourceVersion": found["metadata"]["resourceVersion"]}
            body = {**found, "metadata": metadata, "spec": {**found["spec"], "suspend": is_suspended}}
            await tolerant(self.world.management.api.replace(path(name), body))

    @rule(name=NAMES, change=st.sampled_from(sorted(TEMPLATES)), resumes=st.booleans(), wait=WAITS)
    def a_user_changes_the_template(self, name: str, change: str, resumes: bool, wait: float) -> None:
        """Of a suspended Job; the API server refuses it for others."""
        patch: Json = {"spec": {"template": TEMPLATES[change]} | ({"suspend": False} if resumes else {})}
        self._do(self._and_wait(self.world.change(name, patch), wait))

    @rule(name=NAMES, wait=SOON)
    def a_user_takes_a_backup(self, name: str, wait: float) -> None:
        found = [one for one in self.laws.sources.values() if one["metadata"]["name"] == name]
        if found:
            self._backups[name] = found[0]
        self._do(asyncio.sleep(wait))

    @rule(name=NAMES, has_annotations=st.booleans(), wait=WAITS)
    def a_user_restores_a_backup(self, name: str, has_annotations: bool, wait: float) -> None:
        """The same name and another uid; annotations and labels, ours too, are what they were."""
        body = self._backups.get(name)
        if body is not None:
            self._do(self._and_wait(self._restore(name, body, has_annotations), wait))

    async def _restore(self, name: str, body: Json, has_annotations: bool) -> None:
        spec = {key: value for key, value in body["spec"].items() if key != "selector"}
        generated = ("controller-uid", "job-name")
        template = spec["template"]
        labels = template.get("metadata", {}).get("labels") or {}
        kept = {key: value for key, value in labels.items() if not key.endswith(generated)}
        spec["template"] = {**template, "metadata": {**template.get("metadata", {}), "labels": kept}}
        metadata: Json = {"name": name}
        if has_annotations:
            metadata |= {field: body["metadata"].get(field) or {} for field in ("labels", "annotations")}
        new = {**body, "metadata": metadata, "spec": spec}
        await tolerant(self.world.management.api.create(path(""), new))

    @rule(name=NAMES, wait=WAITS)
    def an_operator_restores_the_stored_job(self, name: str, wait: float) -> None:
        """The same uid and status as when it was deleted."""
        body = self.laws.deleted.get(name)
        if body is not None and "deletionTimestamp" not in body["metadata"]:
            self._do(self._at_once(lambda: self._put_back(body), wait))

    def _put_back(self, body: Json) -> None:
        self.world.restore_stored(body)
        self.laws.read(self.world.management, RESTORED)  # no request tells of it, and the history may be forgotten

    # -- people and controllers on workers -----------------------------------------------------------------------------

    @rule(cluster=CLUSTERS, name=NAMES, edit=st.sampled_from(sorted(EDITS)), wait=WAITS)
    def a_person_edits_a_mirror(self, cluster: str, name: str, edit: str, wait: float) -> None:
        self._do(self._and_wait(self._edit(cluster, name, EDITS[edit]), wait))

    @rule(
        cluster=CLUSTERS,
        name=NAMES,
        key=st.sampled_from(OF_A_MIRROR),
        value=st.sampled_from((None, "x", "a source", "another source")),
        wait=WAITS,
    )
    def a_person_edits_our_labels(self, cluster: str, name: str, key: str, value: str | None, wait: float) -> None:
        if value and value.endswith("source"):
            is_same = value == "a source"
            sources = [(one["metadata"]["name"], uid) for uid, one in self.laws.sources.items()]
            value = next((uid for found, uid in sources if (found == name) == is_same), "y")
        self._do(self._and_wait(self._edit(cluster, name, {"metadata": {"labels": {key: value}}}), wait))

    @rule(cluster=CLUSTERS, name=NAMES, wait=WAITS)
    def an_earlier_version_noted_less(self, cluster: str, name: str, wait: float) -> None:
        for found in self.world.jobs_on(cluster):
            text = (found["metadata"].get("annotations") or {}).get(names.CARRIED)
            note = msgspec.json.decode(text) if text else {}
            if found["metadata"]["name"] == name and isinstance(note, dict) and note:
                note.pop(sorted(note)[-1])
                patch = {"metadata": {"annotations": {names.CARRIED: msgspec.json.encode(note).decode()}}}
                self._do(self._edit(cluster, name, patch))
        self._do(asyncio.sleep(wait))

    @rule(
        cluster=CLUSTERS,
        name=NAMES,
        labels=st.sampled_from(("none", "origin", "source-uid", "another origin", "both", "another cluster")),
        prefix=PREFIX,
        wait=WAITS,
    )
    def a_person_has_a_job_of_that_name(self, cluster: str, name: str, labels: str, prefix: str, wait: float) -> None:
        source_uid = next((uid for uid, one in self.laws.sources.items() if one["metadata"]["name"] == name), "x")
        ours = {names.ORIGIN: self.world.origin, names.SOURCE_UID: source_uid}
        body = job(name, managed_by=None, run_for="3s")
        body["metadata"]["labels"] = {
            "none": {},
            "origin": {names.ORIGIN: self.world.origin},
            "source-uid": {names.SOURCE_UID: source_uid},
            "another origin": ours | {names.ORIGIN: "another-cluster"},
            "both": ours | {names.SOURCE_UID: "x"},
            "another cluster": ours | {names.SOURCE_UID: "x", names.MANAGEMENT_UID: ANOTHER_CLUSTER},
        }[labels]
        namespace = f"{MANAGEMENT_PREFIX if cluster == 'management' else prefix}default"
        api = self.world.planes[cluster].api
        self._do(self._and_wait(tolerant(api.create(path("", namespace), body)), wait))

    @rule(cluster=CLUSTERS, name=NAMES, keeps_labels=st.booleans(), wait=WAITS, gap=SOON)
    def a_person_recreates_a_mirror(self, cluster: str, name: str, keeps_labels: bool, wait: float, gap: float) -> None:
        self._do(self._and_wait(self._recreate(cluster, name, keeps_labels, gap), wait))

    async def _recreate(self, cluster: str, name: str, keeps_labels: bool, gap: float) -> None:
        for found in self.world.jobs_on(cluster):
            metadata = found["metadata"]
            if metadata["name"] == name:
                await self.world.delete(name, cluster=cluster)
                await asyncio.sleep(gap)
                body = job(name, managed_by=None, run_for="5s")
                if keeps_labels:
                    body["metadata"]["labels"] = metadata.get("labels") or {}
                await tolerant(self.world.planes[cluster].api.create(path("", metadata["namespace"]), body))
                return

    async def _edit(self, cluster: str, name: str, patch: Json) -> None:
        """Refused, or changed by admission until it is refused, it is nothing."""
        if cluster == "management" and not self.world.jobs_on(cluster):
            return
        for namespace in self.world.namespaces_of(name, cluster):
            if cluster != "management" or namespace != "default":
                await tolerant(self.world.planes[cluster].api.merge(path(name, namespace), patch))

    @rule(cluster=CLUSTERS, operation=st.sampled_from(("CREATE", "UPDATE", "both")), wait=WAITS,
          change=st.sampled_from(sorted(CHANGES)))  # fmt: skip
    def admission_changes_jobs(self, cluster: str, operation: str, change: str, wait: float) -> None:
        operations = ("CREATE", "UPDATE") if operation == "both" else (operation,)
        self.world.planes[cluster].mutations |= dict.fromkeys(operations, change)
        self._do(asyncio.sleep(wait))

    @rule(cluster=CLUSTERS, wait=WAITS)
    def admission_is_switched_off(self, cluster: str, wait: float) -> None:
        self.world.planes[cluster].mutations.clear()
        self._do(asyncio.sleep(wait))
