"""``mirror worker drain`` and ``remove --clean-up``: finished mirrors go, what is not ours or not stored stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_cli_worker import HOME, Clusters, clusters, place

from mirror.cli.worker import add, drain
from mirror.cli.worker.operations.sites import ClusterError
from mirror.model import names
from mirror.planes.api import Api

pytestmark = pytest.mark.slow

__all__ = ["clusters"]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
END = {
    "startTime": "2026-11-22T10:00:00Z",
    "completionTime": "2026-11-22T10:01:00Z",
    "conditions": [
        {"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": "2026-11-22T10:01:00Z"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ],
}


async def finish(api: Api, name: str, *more: dict[str, str]) -> None:
    await api.merge(f"{JOBS}/{name}/status", {"status": {**END, "conditions": [*END["conditions"], *more]}})


async def uid_of(api: Api, path: str) -> str:
    return str((await api.get(path))["metadata"]["uid"])


async def mirror(clusters: Clusters, name: str, *, ends: bool = True, **labels: str) -> None:
    """A mirror as the manager creates it, unless ``labels`` say otherwise."""
    own = {
        names.ORIGIN: await uid_of(clusters.management.api, "/api/v1/namespaces/kube-system"),
        names.SOURCE_UID: await uid_of(clusters.management.api, f"{JOBS}/{name}"),
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}}
    given = {
        key.replace("origin", names.ORIGIN)
        .replace("source", names.SOURCE_UID)
        .replace("management", names.MANAGEMENT_UID): v
        for key, v in labels.items()
    }
    meta: dict[str, Any] = {"name": name, "labels": {key: value for key, value in (own | given).items() if value}}
    await clusters.east.api.create(JOBS, {"metadata": meta, "spec": {"template": template}})
    if ends:
        await finish(clusters.east.api, name)


async def stored(clusters: Clusters, name: str) -> None:
    """A source whose terminal status is stored."""
    await place(clusters.management.api, name)
    await finish(
        clusters.management.api,
        name,
        {"type": names.PLACED, "status": "True", "message": "east", "reason": "Placed"},
    )


async def left_on(clusters: Clusters) -> set[str]:
    return {one["metadata"]["name"] for one in await clusters.east.api.list(JOBS)}


async def registered(clusters: Clusters) -> None:
    """A worker that the manager has been in contact with."""
    await add.add(clusters.asked(no_check=True))
    uid = await uid_of(clusters.east.api, "/api/v1/namespaces/kube-system")
    record = {"metadata": {"name": "jobmirror-workers"}, "data": {"east": json.dumps({"uid": uid})}}
    await clusters.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)


async def everything(clusters: Clusters) -> None:
    """One mirror that may go, and one for each reason to stay."""
    for name in ("done", "another-origin", "another-uid", "no-origin", "unlabelled"):
        await stored(clusters, name)
    await mirror(clusters, "done")
    await mirror(clusters, "another-origin", origin="other")
    await mirror(clusters, "another-uid", source="0b0b0b0b-0000-0000-0000-000000000000")
    await mirror(clusters, "no-origin", origin="")
    await mirror(clusters, "unlabelled", origin="", source="")


async def test_drain_deletes_finished_mirrors_that_are_ours(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those whose terminal status is stored (D8), or whose source is gone (D10); what is of others is not touched."""
    await registered(clusters)
    await everything(clusters)
    capsys.readouterr()
    with pytest.raises(
        drain.Failure, match=r"^2 mirrors left on worker east: Job default/another-origin, Job default/"
    ):
        await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert await left_on(clusters) == {"another-origin", "no-origin", "unlabelled"}
    printed = capsys.readouterr()
    assert "✓ 2 mirrors deleted\n" in printed.out
    assert "is empty" not in printed.out
    assert "! not deleted: Job default/another-origin: label jobmirror.io/origin is not " in printed.err
    assert "see --origin" in printed.err


async def test_drain_leaves_what_has_not_ended_on_either_side(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """A source that is stored as ended while its mirror is not, and the reverse, which keeps the worker in use."""
    await registered(clusters)
    await stored(clusters, "ended-here")
    await mirror(clusters, "ended-here", ends=False)
    await place(clusters.management.api, "ended-there")
    await mirror(clusters, "ended-there")
    with pytest.raises(drain.Failure, match=r"^timed out: 1 Job still running \(default/ended-there\); rerun to"):
        await drain.drain(clusters.where, "east", timeout_seconds=0)
    await clusters.management.api.delete(f"{JOBS}/ended-there")
    with pytest.raises(drain.Failure, match=r"^1 mirror left on worker east: Job default/ended-here; rerun, or"):
        await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert await left_on(clusters) == {"ended-here"}
    assert "Job default/ended-here: it has not ended, though its source has" in capsys.readouterr().err


async def test_a_recorded_mirror_is_its_sources_whatever_its_labels_say(clusters: Clusters) -> None:
    """D1: a label that somebody changed makes no orphan of it, and no mirror of a copy."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done", source="0b0b0b0b-0000-0000-0000-000000000000")
    uid = await uid_of(clusters.east.api, f"{JOBS}/done")
    placed = {"type": names.PLACED, "status": "True", "message": "east", "reason": "Placed"}
    await finish(
        clusters.management.api,
        "done",
        placed,
        {"type": names.MIRRORED, "status": "True", "message": uid, "reason": "Mirrored"},
    )
    await drain.drain(clusters.where, "east", timeout_seconds=20)
    assert await left_on(clusters) == set()


async def test_more_orphans_than_a_sweep_may_delete_stay(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what a management cluster restored from an old backup looks like (D10)."""
    await registered(clusters)
    for number in range(21):
        await stored(clusters, f"orphan-{number}")
        await mirror(clusters, f"orphan-{number}")
        await clusters.management.api.delete(f"{JOBS}/orphan-{number}")
    with pytest.raises(drain.Failure, match=r"^21 mirrors left on worker east: .*, …; rerun"):
        await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert len(await left_on(clusters)) == 21
    assert "its source is gone, as are 21 of 21" in capsys.readouterr().err


async def test_a_drain_of_a_worker_that_is_down_says_what_it_leaves(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody could look: it is not called empty, Jobs that ended there are named, and --force has to be said."""
    await registered(clusters)
    await clusters.east.kill()
    for command in (
        lambda: drain.drain(clusters.where, "east", timeout_seconds=20),
        lambda: drain.remove(clusters.where, "east", drain.Removal()),
    ):
        with pytest.raises((drain.Failure, ClusterError)) as told:
            await command()
        text = str(told.value)
        assert text.startswith("mirrors on worker east were not deleted: worker east (https://127.0.0.1:")
        assert "is unreachable: connection closed by the API server" in text
        assert "there may be those of Jobs that are deleted; " in text
        assert "--force" in text
    assert "✓" not in capsys.readouterr().out.partition("created\n")[2]

    await stored(clusters, "done")
    with pytest.raises(drain.Failure, match=r"were not deleted: .* there may be those of Job default/done; rerun, or"):
        await drain.drain(clusters.where, "east", timeout_seconds=20)
    with pytest.raises(ClusterError, match=r"those of Job default/done; it stays registered: rerun, or with --force"):
        await drain.remove(clusters.where, "east", drain.Removal())
    await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    await drain.remove(clusters.where, "east", drain.Removal(is_forced=True))
    printed = capsys.readouterr()
    assert "✓ worker east is unregistered" in printed.out
    assert printed.err.endswith("there may be those of Job default/done\n")


async def test_a_drain_deletes_nothing_on_another_cluster(clusters: Clusters) -> None:
    """D19: the Secret may lead elsewhere by now."""
    await registered(clusters)
    await everything(clusters)
    record = {"data": {"east": json.dumps({"uid": "another"})}}
    await clusters.management.api.merge(f"/api/v1/namespaces/{HOME}/configmaps/jobmirror-workers", record)
    with pytest.raises(drain.Failure, match="nothing is cleaned up"):
        await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert "done" in await left_on(clusters)


async def test_a_mirror_that_may_not_be_deleted_is_named(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the missing permission; the others go all the same, and so they do once it is there."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done")
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/jobmirror-worker"
    rules = (await clusters.east.api.get(path))["rules"]
    without = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "delete"]} for rule in rules]
    await clusters.east.api.merge(path, {"rules": without})
    with pytest.raises(drain.Failure, match=r"^1 mirror left on worker east: Job default/done; rerun"):
        await drain.drain(clusters.where, "east", timeout_seconds=20)
    assert "Job default/done: missing permission: delete jobs.batch done" in capsys.readouterr().err

    await clusters.east.api.merge(path, {"rules": rules})
    await drain.remove(clusters.where, "east", drain.Removal())
    assert await left_on(clusters) == set()
    assert "✓ 1 mirror deleted\n✓ worker east is unregistered\n" in capsys.readouterr().out


async def test_clean_up_deletes_finished_mirrors_before_the_secret(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the operator's own permissions; a cluster that is not the worker's is refused, and then the Secret stays."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done")
    with pytest.raises(ClusterError, match="nothing is cleaned up"):
        await drain.remove(clusters.where, "east", drain.Removal(worker_context="hub"))
    await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    capsys.readouterr()
    await drain.remove(clusters.where, "east", drain.Removal(worker_context="east"))

    assert await left_on(clusters) == set()
    assert capsys.readouterr().out.startswith("✓ 1 mirror deleted\n✓ worker east is unregistered\n")


async def test_mirrors_of_an_origin_of_the_settings_are_found_by_it(clusters: Clusters) -> None:
    """The manager's setting, said again."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done", origin="production")
    await drain.drain(clusters.where, "east", timeout_seconds=20, origin="production")

    assert await left_on(clusters) == set()


async def test_mirrors_of_another_management_cluster_are_none_of_ours(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """D1: two that have one origin by mistake; to us these mirrors have no source."""
    await registered(clusters)
    for name, management in (("theirs", "another-cluster"), ("ours", "")):
        await stored(clusters, name)
        management = management or await uid_of(clusters.management.api, "/api/v1/namespaces/kube-system")
        await mirror(clusters, name, origin="production", management=management)
        await clusters.management.api.delete(f"{JOBS}/{name}")
    capsys.readouterr()
    await drain.drain(clusters.where, "east", timeout_seconds=20, origin="production")
    assert await left_on(clusters) == {"theirs"}
    assert "theirs" not in capsys.readouterr().err


async def test_the_origin_that_the_manager_has_recorded_is_used(clusters: Clusters) -> None:
    """Whoever drains need not know the settings."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done", origin="production")
    path = f"/api/v1/namespaces/{HOME}/configmaps/{names.WORKERS_CONFIGMAP}"
    await clusters.management.api.merge(path, {"metadata": {"annotations": {names.ORIGIN: "production"}}})
    await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert await left_on(clusters) == set()
