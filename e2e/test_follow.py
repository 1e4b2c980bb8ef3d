"""What users change on the source follows to its mirror, and what is not the worker's business stays (D4, D5, D9)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    Scene,
    annotation,
    condition,
    indexed,
    is_complete,
    is_failed,
    job,
    placed_on,
    runs,
    uid,
)
from e2e.manager import ManagerProcess

OURS = "jobmirror.io/"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
GENERATED = {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}


class TestChanges:
    """A running mirror gets what the API lets a user change."""

    async def test_an_indexed_job_scales_up_and_down(self, shared_manager: ManagerProcess, scene: Scene) -> None:
        """Elastic Indexed Jobs stay elastic: pods come and go on the worker, and are counted on the source."""
        await scene.create(indexed("elastic", shared_manager.managed_by, completions=2, run_for="never"))
        source = await scene.source_until("elastic", runs(2))
        worker = placed_on(source)

        for size in (4, 1):
            await scene.patch("elastic", {"spec": {"completions": size, "parallelism": size}})
            await scene.source_until("elastic", runs(size))
            mirror = await scene.mirror_until(worker, "elastic", runs(size))
            assert (mirror["spec"]["completions"], mirror["spec"]["parallelism"]) == (size, size)

    async def test_metadata_and_limits_follow_and_what_others_added_stays(
        self, shared_manager: ManagerProcess, scene: Scene
    ) -> None:
        """Labels, annotations, backoffLimit, parallelism: added, changed and removed; the worker's own keys stay."""
        labels, notes = {"team": "a", "stage": "dev"}, {"example.com/note": "one", "example.com/old": "x"}
        body = job(
            "changing", shared_manager.managed_by, run_for="never", labels=labels, annotations=notes, parallelism=1
        )
        await scene.create(body | {"spec": {**body["spec"], "completions": 5}})
        worker = placed_on(await scene.source_until("changing", runs(1)))
        theirs = {"metadata": {"labels": {"theirs": "yes"}, "annotations": {"example.org/theirs": "yes"}}}
        await scene.client_of(worker).merge(f"{scene.jobs(worker)}/changing", theirs)

        changed = {
            "metadata": {
                "labels": {"team": "b", "stage": None, "new": "1"},
                "annotations": {"example.com/note": "two", "example.com/old": None},
            },
            "spec": {"backoffLimit": 3, "parallelism": 2},
        }
        await scene.patch("changing", changed)
        mirror = await scene.mirror_until(worker, "changing", runs(2))

        wanted = {"team": "b", "new": "1", "theirs": "yes"}
        assert wanted == without_ours(mirror["metadata"]["labels"])
        assert without_ours(mirror["metadata"]["annotations"]) == {
            "example.com/note": "two",
            "example.org/theirs": "yes",
        }
        assert mirror["spec"]["backoffLimit"] == 3
        await scene.source_until("changing", runs(2))

    async def test_a_deadline_set_later_ends_the_job(self, shared_manager: ManagerProcess, scene: Scene) -> None:
        """activeDeadlineSeconds given later is the worker's to keep, and its verdict comes back."""
        await scene.create(job("endless", shared_manager.managed_by, run_for="never"))
        await scene.source_until("endless", runs(1))

        await scene.patch("endless", {"spec": {"activeDeadlineSeconds": 1}})

        ended = await scene.source_until("endless", is_failed)
        assert condition(ended, "Failed")["reason"] == "DeadlineExceeded"

    async def test_replacing_the_manifest_keeps_the_place(
        self, shared_manager: ManagerProcess, scene: Scene, management: ControlPlane
    ) -> None:
        """`kubectl replace` drops our annotations, not the recorded worker; they come back and nothing moves (D5)."""
        body = job("replaced", shared_manager.managed_by, run_for="never")
        manifest = msgspec.json.encode(body).decode()
        in_namespace = ("--namespace", scene.namespace)
        await management.kubectl("create", "--filename=-", *in_namespace, stdin=manifest)
        before = await scene.source_until("replaced", lambda found: annotation(found, "mirror-uid") and runs()(found))
        worker = placed_on(before)
        mirror = await scene.mirror_until(worker, "replaced", runs())

        # The spec as it is stored: selector and generated labels are immutable, and a manifest without them is refused.
        got = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "replaced", "labels": {"again": "yes"}},
            "spec": before["spec"],
        }
        await management.kubectl("replace", "--filename=-", *in_namespace, stdin=msgspec.json.encode(got).decode())

        restored = await scene.source_until(
            "replaced", lambda found: annotation(found, "assigned-worker") == worker and "again" in label_keys(found)
        )
        after = await scene.mirror_until(worker, "replaced", lambda found: "again" in label_keys(found))
        assert placed_on(restored) == worker
        assert uid(before) == uid(restored)
        assert uid(mirror) == uid(after)
        assert list(await scene.mirrors("replaced")) == [worker]
        await scene.only_event("replaced", "Mirrored")


class TestStripping:
    """A mirror is the source without what belongs to the management cluster."""

    async def test_a_mirror_has_only_what_is_the_workers_business(
        self, shared_manager: ManagerProcess, scene: Scene, management: ControlPlane
    ) -> None:
        """No managedBy, TTL, generated labels, selector or last-applied of the source; all else is the same (D4)."""
        body = job(
            "stripped",
            shared_manager.managed_by,
            run_for="never",
            labels={"kept": "yes"},
            annotations={"example.com/kept": "yes", "on-mirror-loss": "Fail"},
            ttlSecondsAfterFinished=3600,
            activeDeadlineSeconds=600,
        )
        body["metadata"]["finalizers"] = ["example.com/of-the-source"]
        body["spec"]["template"]["metadata"]["labels"] = {"app": "x"}
        body["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}]
        manifest = msgspec.json.encode(body).decode()
        await management.kubectl("apply", "--filename=-", "--namespace", scene.namespace, stdin=manifest)
        source = await scene.source_until("stripped", runs())
        worker = placed_on(source)
        mirror = await scene.mirror_until(worker, "stripped", runs())

        metadata, spec = mirror["metadata"], mirror["spec"]
        assert LAST_APPLIED in source["metadata"]["annotations"]
        assert set(metadata["labels"]) == {
            "kept",
            *(f"{OURS}{name}" for name in ("management-uid", "origin", "source-uid")),
        }
        assert set(metadata["annotations"]) == {"example.com/kept", f"{OURS}carried"}
        assert metadata["labels"][f"{OURS}source-uid"] == uid(source) != uid(mirror)
        assert metadata["labels"][f"{OURS}origin"] == shared_manager.origin
        assert not metadata.get("finalizers")
        assert not metadata.get("ownerReferences")
        assert not {"managedBy", "ttlSecondsAfterFinished"} & set(spec)
        generated = ("selector", "managedBy", "ttlSecondsAfterFinished")
        assert plain_template(spec) == plain_template(source["spec"])
        assert {key: value for key, value in spec.items() if key not in (*generated, "template")} == {
            key: value for key, value in source["spec"].items() if key not in (*generated, "template")
        }
        assert spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid(mirror)}
        await scene.patch("stripped", {"metadata": {"finalizers": None}})

    async def test_a_manual_selector_is_kept(self, shared_manager: ManagerProcess, scene: Scene) -> None:
        """manualSelector: true makes the selector the user's business, on the worker too (D4)."""
        body = job("manual", shared_manager.managed_by, manualSelector=True, selector={"matchLabels": {"mine": "yes"}})
        body["spec"]["template"]["metadata"]["labels"] = {"mine": "yes"}

        await scene.create(body)
        source = await scene.source_until("manual", is_complete)

        mirror = (await scene.mirrors("manual"))[placed_on(source)]
        assert mirror["spec"]["selector"] == {"matchLabels": {"mine": "yes"}}
        assert mirror["spec"]["template"]["metadata"]["labels"] == {"mine": "yes"}


def without_ours(found: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations without our own."""
    return {key: value for key, value in found.items() if not key.startswith(OURS)}


def label_keys(found: Json | None) -> set[str]:
    """The keys of an object's labels; none if there is no object."""
    return set((found or {}).get("metadata", {}).get("labels") or ())


def plain_template(spec: Json) -> Json:
    """A pod template without what each cluster generates for itself."""
    template = dict(spec["template"])
    metadata = dict(template["metadata"])
    metadata["labels"] = {key: value for key, value in metadata.get("labels", {}).items() if key not in GENERATED}
    template["metadata"] = {key: value for key, value in metadata.items() if key != "creationTimestamp"}
    return template
