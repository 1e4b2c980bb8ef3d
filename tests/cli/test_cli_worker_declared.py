"""``mirror worker`` of workers that others declare: their Secrets and ClusterProfiles, with RBAC (decision 0012)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from doubles import profiles
from test_cli_worker import HOME, RBAC, Clusters, clusters, document_of, place
from test_cli_worker_drain import JOBS, left_on, mirror, stored, uid_of

from mirror.cli.main import main
from mirror.cli.user.failures import Failure
from mirror.cli.worker import add, check, drain, listing
from mirror.cli.worker.changing import change, changes_of
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.forgetting import forget
from mirror.cli.worker.operations import worker_objects
from mirror.cli.worker.operations.sites import ClusterError
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.model import names
from mirror.planes.api import Api
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, KUBECONFIG_READER, OCM, OCM_SELECTOR, SECRET_READER

__all__ = ["clusters"]

RECORD = f"/api/v1/namespaces/{HOME}/configmaps/{names.WORKERS_CONFIGMAP}"
SECRET = "/api/v1/namespaces/clusters/secrets/prod-kubeconfig"
PROFILE = f"{CLUSTER_PROFILES.path('fleet')}/prod"
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
BY = "Secret clusters/prod-kubeconfig"


@dataclass(frozen=True, slots=True)
class Declared:
    """A worker ``prod`` that something else declares, and what its account's kubeconfig is."""

    clusters: Clusters
    kubeconfig: bytes
    path: str
    """Of the object that declares it."""

    async def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.clusters.management.api.get(self.path))["metadata"]
        return found

    async def annotations(self) -> dict[str, str]:
        return (await self.metadata()).get("annotations") or {}

    async def check(self, where: Where | None = None, *workers: str) -> dict[str, tuple[str, str]]:
        """Verdict and text of each finding."""
        where = where or self.clusters.where
        async with check.clusters.home(where) as home:
            asked = check.Asked(workers=workers, allow=("loopback",), where=where)
            (report,) = await check.reports(home, asked)
        assert report.worker == "prod"
        return {one.what: (one.verdict, one.text) for one in report.findings}

    async def fixes(self) -> dict[str, str]:
        async with check.clusters.home(self.clusters.where) as home:
            (report,) = await check.reports(home, check.Asked(allow=("loopback",), where=self.clusters.where))
        return {one.what: one.fix for one in report.findings}


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def account(clusters: Clusters) -> bytes:
    """A kubeconfig with the permissions that are shipped for a worker, which no Secret of ours holds."""
    await add.add(clusters.asked(no_check=True))
    path = f"/api/v1/namespaces/{HOME}/secrets/east"
    found = base64.b64decode((await clusters.management.api.get(path))["data"]["kubeconfig"])
    await clusters.management.api.delete(path)
    return found


async def record(clusters: Clusters, by: str, **declared: Any) -> None:
    """What the manager writes down of ``prod``."""
    uid = await uid_of(clusters.east.api, "/api/v1/namespaces/kube-system")
    entry = {"uid": uid, "state": "Connected", "since": "2026-11-28T09:00:00Z", "declared": {"by": by, **declared}}
    body = {"metadata": {"name": names.WORKERS_CONFIGMAP}, "data": {"prod": json.dumps(entry)}}
    with contextlib.suppress(StatusError):
        await clusters.management.api.delete(RECORD)
    await clusters.management.api.create(RECORD.rpartition("/")[0], body)


def capi(kubeconfig: bytes) -> dict[str, Any]:
    metadata = {"name": "prod-kubeconfig", "labels": {CLUSTER_NAME: "prod"}, "annotations": {"theirs": "kept"}}
    return {"metadata": metadata, "data": {"value": encoded(kubeconfig)}, "type": "cluster.x-k8s.io/secret"}


@pytest.fixture
async def by_secret(clusters: Clusters) -> Declared:
    """As Cluster API declares it, in a namespace of its own."""
    kubeconfig, api = await account(clusters), clusters.management.api
    await api.create("/api/v1/namespaces", {"metadata": {"name": "clusters"}})
    await api.create(SECRET.rpartition("/")[0], capi(kubeconfig))
    await record(clusters, BY, key="value")
    return Declared(clusters, kubeconfig, SECRET)


@pytest.fixture
async def by_profile(clusters: Clusters) -> Declared:
    """As a cluster manager declares it; its token is in a Secret of the manager's namespace."""
    kubeconfig, api = await account(clusters), clusters.management.api
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", profiles.definition())
    await served(api, CLUSTER_PROFILES.path())
    await api.create("/api/v1/namespaces", {"metadata": {"name": "fleet"}})
    token = yaml.safe_load(kubeconfig)["users"][0]["user"]["token"]
    allowed = {"name": "prod-token", "annotations": {names.FOR_CLUSTER_PROFILES: "prod"}}
    secret = {"metadata": allowed, "data": {"token": encoded(token.encode())}}
    await api.create(f"/api/v1/namespaces/{HOME}/secrets", secret)
    await says(clusters, kubeconfig, SECRET_READER, {"clusterName": "prod-token"})
    await record(clusters, "ClusterProfile fleet/prod")
    return Declared(clusters, kubeconfig, PROFILE)


async def served(api: Api, path: str) -> None:
    """A definition is settled some turns of the loop later."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(StatusError):
                await api.list(path)
                return
            await asyncio.sleep(0)


async def says(clusters: Clusters, kubeconfig: bytes, provider: str, extension: dict[str, str]) -> None:
    """Where a ClusterProfile says that its credentials are."""
    body = profiles.profile("prod", provider, extension)
    (cluster,) = yaml.safe_load(kubeconfig)["clusters"]
    body["status"]["accessProviders"][0]["cluster"].update(cluster["cluster"])
    with contextlib.suppress(StatusError):
        await clusters.management.api.delete(PROFILE)
    await clusters.management.api.create(CLUSTER_PROFILES.path("fleet"), body)


async def with_rights(clusters: Clusters, folder: Path, *rights: tuple[str, Sequence[str], str]) -> Where:
    """An operator who may read ConfigMaps, Leases, Jobs and namespaces everywhere, and (NAMESPACE, VERBS, RESOURCE)."""
    api, user = clusters.management.api, f"/api/v1/namespaces/{HOME}/serviceaccounts"
    await api.create(user, {"metadata": {"name": "operator"}})
    token = (await api.create(f"{user}/operator/token", {"spec": {"expirationSeconds": 3600}}))["status"]["token"]
    resources = ["configmaps", "leases", "jobs", "namespaces"]
    reading = {"apiGroups": ["*"], "resources": resources, "verbs": ["get", "list"]}
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": HOME}
    for number, (namespace, verbs, resource) in enumerate(rights):
        rules = [{"apiGroups": ["*"], "resources": [resource], "verbs": list(verbs)}]
        metadata = {"name": f"operator-{number}"}
        where = f"{RBAC}/namespaces/{namespace}"
        await api.create(f"{where}/roles", {"metadata": metadata, "rules": rules})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]}
        await api.create(f"{where}/rolebindings", {"metadata": metadata, "roleRef": ref, "subjects": [subject]})
    await api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "operator"}, "rules": [reading]})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator"}
    binding = {"metadata": {"name": "operator"}, "roleRef": ref, "subjects": [subject]}
    await api.create(f"{RBAC}/clusterrolebindings", binding)
    document = document_of(clusters.where)
    document["users"] = [{"name": one["name"], "user": {"token": token}} for one in document["users"]]
    path = folder / "operator"
    path.write_text(yaml.safe_dump(document))
    return replace(clusters.where, kubeconfig=str(path))


# -- cordon, uncordon, set ---------------------------------------------------------------------------------------------


async def test_what_a_worker_gets_is_set_on_the_secret_that_declares_it(
    by_secret: Declared, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our annotations and its labels, and nothing else of what belongs to somebody else."""
    where = by_secret.clusters.where
    capsys.readouterr()
    await drain.cordon(where, "prod")
    assert await by_secret.annotations() == {"theirs": "kept", names.CORDONED: "true"}
    await drain.cordon(where, "prod")
    await change(where, "prod", changes_of("20", "2", "team-*", ["region=eu"]))
    metadata = await by_secret.metadata()
    set_there = {names.CAPACITY: "20", names.WEIGHT: "2", names.NAMESPACES: "team-*"}
    assert metadata["annotations"] == {"theirs": "kept", names.CORDONED: "true", **set_there}
    assert metadata["labels"] == {CLUSTER_NAME: "prod", "region": "eu"}
    await drain.uncordon(where, "prod")
    await change(where, "prod", changes_of("none", "none", "none", ["region-"]))
    metadata = await by_secret.metadata()
    assert (metadata["annotations"], metadata["labels"]) == ({"theirs": "kept"}, {CLUSTER_NAME: "prod"})
    secret = await by_secret.clusters.management.api.get(SECRET)
    assert secret["data"] == {"value": encoded(by_secret.kubeconfig)}
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["✓ worker prod is cordoned", "✓ worker prod was cordoned already"]
    assert printed[3] == "✓ worker prod is schedulable"


async def test_what_a_worker_gets_is_set_on_the_profile_that_declares_it(by_profile: Declared) -> None:
    """Its spec and status stay."""
    where, before = by_profile.clusters.where, await by_profile.clusters.management.api.get(PROFILE)
    await drain.cordon(where, "prod")
    await change(where, "prod", changes_of("3", "", "", ["region=eu"]))
    found = await by_profile.clusters.management.api.get(PROFILE)
    assert found["metadata"]["annotations"] == {names.CORDONED: "true", names.CAPACITY: "3"}
    assert found["metadata"]["labels"] == {"region": "eu"}
    assert (found["spec"], found["status"]) == (before["spec"], before["status"])


async def test_the_label_that_may_name_a_worker_is_left(by_secret: Declared) -> None:
    """Without it nothing would declare the worker any more."""
    with pytest.raises(ClusterError, match=rf"label {CLUSTER_NAME} of {BY} may be what names the worker"):
        await change(by_secret.clusters.where, "prod", changes_of("", "", "", [f"{CLUSTER_NAME}-"]))
    assert (await by_secret.metadata())["labels"] == {CLUSTER_NAME: "prod"}


@pytest.mark.parametrize(
    ("verbs", "missing"),
    [
        (("get",), "patch secrets prod-kubeconfig in namespace clusters"),
        (("patch",), "get secrets prod-kubeconfig in namespace clusters"),
    ],
)
async def test_a_missing_permission_is_named(
    by_secret: Declared, tmp_path: Path, verbs: Sequence[str], missing: str
) -> None:
    """By each command, with how to look; nothing is changed."""
    where = await with_rights(by_secret.clusters, tmp_path, ("clusters", verbs, "secrets"))
    for command in (
        lambda: drain.cordon(where, "prod"),
        lambda: change(where, "prod", changes_of("3", "", "", [])),
        lambda: drain.drain(where, "prod", timeout_seconds=0),
        lambda: drain.remove(where, "prod", drain.Removal()),
    ):
        with pytest.raises(
            ClusterError, match=f"missing permission: {missing} on the management cluster; see: kubectl"
        ):
            await command()
    assert await by_secret.annotations() == {"theirs": "kept"}


async def test_who_may_write_the_declaration_needs_none_of_our_secrets(by_secret: Declared, tmp_path: Path) -> None:
    """What counts for the name the manager has recorded."""
    where = await with_rights(by_secret.clusters, tmp_path, ("clusters", ("get", "patch"), "secrets"))
    await drain.cordon(where, "prod")
    assert (await by_secret.annotations())[names.CORDONED] == "true"
    with pytest.raises(ClusterError, match=f"missing permission: get secrets other in namespace {HOME}"):
        await drain.cordon(where, "other")


async def test_another_object_of_the_same_name_is_left_alone(by_secret: Declared) -> None:
    """It was deleted and made anew between reading and writing: its author may mean something else by it."""
    api = by_secret.clusters.management.api
    async with check.clusters.home(by_secret.clusters.where) as home:
        worker = await worker_objects.find(home, "prod")
        await api.delete(SECRET)
        with pytest.raises(ClusterError, match=f"^{BY} was deleted in the meantime"):
            await worker_objects.annotate(home, worker, {names.CORDONED: "true"})
        await api.create(SECRET.rpartition("/")[0], capi(by_secret.kubeconfig))
        with pytest.raises(ClusterError, match=f"^{BY} was replaced in the meantime: rerun"):
            await worker_objects.annotate(home, worker, {names.CORDONED: "true"})
    assert await by_secret.annotations() == {"theirs": "kept"}


@pytest.mark.parametrize(
    ("by", "told"),
    [
        ("Secret clusters/other", "is declared by Secret clusters/other, which does not exist any more"),
        (f"Secret {HOME}/unrelated", f"Secret {HOME}/unrelated does not declare worker prod any more"),
        ("Secret clusters/prod-kube…", "the record does not tell which object that is"),
        ("Pod clusters/prod", "the record does not tell which object that is"),
        ("Secret ../prod", "the record does not tell which object that is"),
    ],
    ids=["gone", "another's", "cut", "another kind", "no name"],
)
async def test_a_record_that_leads_to_no_declaration_changes_nothing(by_secret: Declared, by: str, told: str) -> None:
    """Who writes the record chooses no object of somebody else's."""
    api = by_secret.clusters.management.api
    await api.create(f"/api/v1/namespaces/{HOME}/secrets", {"metadata": {"name": "unrelated"}})
    await record(by_secret.clusters, by, key="value")
    with pytest.raises(ClusterError, match=told):
        await drain.cordon(by_secret.clusters.where, "prod")
    assert "annotations" not in (await api.get(f"/api/v1/namespaces/{HOME}/secrets/unrelated"))["metadata"]
    assert (await by_secret.check())["declaration"][0] in ("fail", "warn")


async def test_a_secret_of_ours_counts_first(by_secret: Declared) -> None:
    """As for the manager."""
    await add.add(by_secret.clusters.asked(name="prod", no_check=True))
    await drain.cordon(by_secret.clusters.where, "prod")
    assert await by_secret.annotations() == {"theirs": "kept"}


def test_names_of_declared_workers_are_completed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After TAB, and when a name is misspelt."""

    class Home:
        async def worker_names(self) -> list[str]:
            return ["prod", "east"]

    @contextlib.asynccontextmanager
    async def home(where: Where) -> Any:
        yield Home()

    monkeypatch.setattr(check.clusters, "home", home)
    command = main.commands["worker"]
    assert isinstance(command, click.Group)
    context = click.Context(command.commands["cordon"])
    assert check.clusters.worker_names(context, "p") == ["prod"]


async def test_a_misspelt_name_is_compared_with_declared_workers(by_secret: Declared) -> None:
    """They are workers, too."""
    async with check.clusters.home(by_secret.clusters.where) as home:
        assert await home.worker_names() == ["prod"]
    with pytest.raises(ClusterError, match=r"worker prdo not found .* did you mean prod"):
        await drain.cordon(by_secret.clusters.where, "prdo")


# -- drain, remove, forget ---------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_declared_worker_is_drained_and_never_unregistered(
    by_secret: Declared, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its mirrors go; what declares it stays, and is named with what its author can do."""
    clusters, api = by_secret.clusters, by_secret.clusters.management.api
    await place(api, "train")
    await moved(clusters, "train")
    with pytest.raises(ClusterError, match="1 unfinished Jobs are on worker prod"):
        await drain.remove(clusters.where, "prod", drain.Removal())
    assert await by_secret.annotations() == {"theirs": "kept"}
    with pytest.raises(Failure, match=r"^timed out: 1 Job still running"):
        await drain.drain(clusters.where, "prod", timeout_seconds=0, how="move")
    assert (await by_secret.annotations())[names.DRAIN] == "move"
    await api.delete(f"{JOBS}/train")

    await stored(clusters, "done")
    await moved(clusters, "done")
    await mirror(clusters, "done")
    capsys.readouterr()
    await drain.drain(clusters.where, "prod", timeout_seconds=20)
    unregistering = f"to unregister it, delete {BY}, or remove the label from it that workers.secretSources selects"
    printed = capsys.readouterr().out
    assert printed == f"✓ 1 mirror deleted\n✓ worker prod is empty: {unregistering}\n"
    assert await left_on(clusters) == set()
    for how in (drain.Removal(), drain.Removal(is_forced=True)):
        with pytest.raises(Failure) as told:
            await drain.remove(clusters.where, "prod", how)
        assert told.value.format_message() == (f"worker prod gets no new Jobs, and stays registered: {unregistering}")
    assert "unregistered" not in capsys.readouterr().out
    assert await by_secret.annotations() == {"theirs": "kept", names.DRAIN: "wait"}


async def moved(clusters: Clusters, name: str) -> None:
    """Say of a source that it was placed on ``prod``."""
    api = clusters.management.api
    source = await api.get(f"{JOBS}/{name}")
    for one in source["status"]["conditions"]:
        if one["type"] == names.PLACED:
            one["message"] = "prod"
    await api.replace(f"{JOBS}/{name}/status", source)


async def test_remove_keeps_new_jobs_away_from_a_declared_worker(by_profile: Declared) -> None:
    """Since its registration stays, it would get some otherwise; --clean-up has nothing to delete there."""
    where = by_profile.clusters.where
    with pytest.raises(ClusterError, match="declared by ClusterProfile fleet/prod: --clean-up deletes what mirror"):
        await drain.remove(where, "prod", drain.Removal(worker_context="east"))
    assert await by_profile.annotations() == {}
    with pytest.raises(Failure, match=r"stays registered: to unregister it, delete ClusterProfile fleet/prod$"):
        await drain.remove(where, "prod", drain.Removal())
    assert await by_profile.annotations() == {names.DRAIN: "wait"}


async def test_mirrors_of_a_declared_worker_whose_secret_may_not_be_read_are_not_called_gone(
    by_profile: Declared, tmp_path: Path
) -> None:
    """The operator may write the profile, and not read the token: nobody looked there."""
    rights = ("fleet", ("get", "patch"), "clusterprofiles")
    where = await with_rights(by_profile.clusters, tmp_path, rights)
    with pytest.raises(Failure) as told:
        await drain.drain(where, "prod", timeout_seconds=20)
    text = told.value.format_message()
    missing = f"missing permission: get secrets prod-token in namespace {HOME} on the management cluster"
    assert text.startswith(f"mirrors on worker prod were not deleted: {missing}")
    assert "there may be those of Jobs that are deleted; rerun, or leave them there: to unregister it, delete" in text


async def test_a_declared_worker_is_declared_dead(by_secret: Declared) -> None:
    """Where it is declared, or where nothing declares it any more by a Secret of ours."""
    clusters, api = by_secret.clusters, by_secret.clusters.management.api
    found = await api.get(RECORD)
    lost = found["data"]["prod"].replace("Connected", "Lost")
    await api.merge(RECORD, {"data": {"prod": lost}})
    await forget(clusters.where, "prod")
    assert (await by_secret.annotations())[names.GONE] == "true"
    await api.delete(SECRET)
    await forget(clusters.where, "prod")
    secret = await api.get(f"/api/v1/namespaces/{HOME}/secrets/prod")
    assert secret["metadata"]["annotations"] == {names.GONE: "true"}


async def test_a_word_that_made_way_is_looked_at_no_more(
    by_secret: Declared, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``forget --undo`` had to make counts as long as nothing declares the worker; ``forget`` removes it."""
    clusters, api = by_secret.clusters, by_secret.clusters.management.api
    own = f"/api/v1/namespaces/{HOME}/secrets"
    word = {"name": "prod", "labels": {names.WORKER: "true"}, "annotations": {names.GONE: "false"}}
    await api.create(own, {"metadata": word})
    capsys.readouterr()
    await listing.show(clusters.where, "json")
    printed = capsys.readouterr().out
    (row,) = json.loads(printed[printed.index("{") :])["items"]
    assert row["reason"] == f"declared by {BY}"
    assert (await by_secret.check())["declaration"] == ("ok", f"by {BY}, well-formed")
    await drain.cordon(clusters.where, "prod")
    assert (await by_secret.annotations())[names.CORDONED] == "true"
    found = await api.get(RECORD)
    await api.merge(RECORD, {"data": {"prod": found["data"]["prod"].replace("Connected", "Lost")}})
    await forget(clusters.where, "prod")
    assert (await by_secret.annotations())[names.GONE] == "true"
    assert "prod" not in [one["metadata"]["name"] for one in await api.list(own)]


async def test_a_word_whose_worker_nothing_else_declares_is_changed(by_secret: Declared) -> None:
    """The manager has not noted yet that what declared it is gone."""
    clusters, api = by_secret.clusters, by_secret.clusters.management.api
    found = await api.get(RECORD)
    await api.merge(RECORD, {"data": {"prod": found["data"]["prod"].replace("Connected", "Lost")}})
    await api.delete(SECRET)
    word = {"name": "prod", "labels": {names.WORKER: "true"}, "annotations": {names.GONE: "false"}}
    await api.create(f"/api/v1/namespaces/{HOME}/secrets", {"metadata": word})
    await forget(clusters.where, "prod")
    secret = await api.get(f"/api/v1/namespaces/{HOME}/secrets/prod")
    assert secret["metadata"]["annotations"] == {names.GONE: "true"}


# -- check -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_worker_that_a_secret_declares_is_checked_as_any_other(by_secret: Declared) -> None:
    """Its kubeconfig is used, by the key that the manager has recorded."""
    await is_checked(by_secret, BY)


@pytest.mark.slow
async def test_a_worker_that_a_profile_declares_is_checked_as_any_other(by_profile: Declared) -> None:
    """The token of the Secret that it names is used."""
    await is_checked(by_profile, "ClusterProfile fleet/prod")


async def is_checked(declared: Declared, by: str) -> None:
    found = await declared.check()
    assert set(found) == set(await declared.check(None, "prod"))
    assert found["declaration"] == ("ok", f"by {by}, well-formed")
    assert found["manager"] == ("ok", "Connected since 2026-11-28T09:00:00Z")
    assert {"kubeconfig", "TLS", "version", "identity", "token", "permissions", "namespaces"} <= set(found)
    assert {what: text for what, (verdict, text) in found.items() if verdict == "fail"} == {}
    assert "the manager renews it" not in found["token"][1]

    await drain.cordon(declared.clusters.where, "prod")
    assert (await declared.check())["declaration"] == ("warn", "unschedulable: cordoned")


async def test_advice_for_a_declared_worker_is_about_what_declares_it(by_secret: Declared) -> None:
    """No command of ours writes its credentials."""
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    await by_secret.clusters.east.api.merge(f"{RBAC}/clusterroles/jobmirror-worker", {"rules": rules})
    assert f"to the account that {BY} leads to" in (await by_secret.fixes())["permissions"]
    await by_secret.clusters.east.api.delete(f"/api/v1/namespaces/{HOME}/serviceaccounts/jobmirror")
    found, fixes = await by_secret.check(), await by_secret.fixes()
    assert found["connection"][0] == "fail"
    assert fixes["connection"] == f"whoever writes {BY} has to correct it"
    assert not any("mirror worker add" in fix for fix in fixes.values())


async def test_a_secret_that_leads_nowhere_is_a_failure(by_secret: Declared) -> None:
    """It is named with the key; what the manager reports is told all the same."""
    await record(by_secret.clusters, BY, key="other")
    found = await by_secret.check()
    text = f"{BY}: data.other: is missing (found: value); put the worker's kubeconfig there"
    assert found["declaration"] == ("fail", text)
    assert found["manager"][0] == "ok"
    await record(by_secret.clusters, BY, key="value")
    await by_secret.clusters.management.api.merge(SECRET, {"data": {"value": encoded(b"c2VjcmV0 no kubeconfig")}})
    verdict, text = (await by_secret.check())["kubeconfig"]
    assert verdict == "fail"
    assert "c2VjcmV0" not in text


async def test_what_an_older_manager_recorded_is_enough_where_it_is_certain(by_secret: Declared) -> None:
    """It did not write down which key is the kubeconfig; Cluster API's Secrets have one."""
    await record(by_secret.clusters, BY)
    assert (await by_secret.check())["identity"][0] == "ok"
    await by_secret.clusters.management.api.merge(SECRET, {"data": {"more": "bm8="}})
    verdict, text = (await by_secret.check())["declaration"]
    assert (verdict, text) == (
        "fail",
        f"{BY}: the manager has not recorded which key of it is the kubeconfig: it is too old",
    )


@pytest.mark.parametrize("named", [(), ("prod",)], ids=["all", "by name"])
async def test_a_declaration_that_may_not_be_read_is_a_warning(
    by_secret: Declared, tmp_path: Path, named: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the permission; what the manager reports is told all the same."""
    where = await with_rights(by_secret.clusters, tmp_path, (HOME, ("get", "list"), "secrets"))
    found = await by_secret.check(where, *named)
    assert set(found) == {"declaration", "manager"}
    verdict, text = found["declaration"]
    missing = "missing permission: get secrets prod-kubeconfig in namespace clusters on the management cluster"
    assert verdict == "warn"
    assert text.startswith(f"declared by {BY}, and not checked: {missing}; see: kubectl")
    assert "auth can-i get secrets -n clusters" in text
    assert found["manager"][0] == "ok"
    capsys.readouterr()
    await check.check(check.Asked(workers=named, allow=("loopback",), where=where, form="json"))
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["apiVersion", "kind", "items"]
    (item,) = printed["items"]
    assert (list(item), item["verdict"]) == (["worker", "verdict", "findings"], "warn")
    assert list(item["findings"][0]) == ["what", "verdict", "text", "fix"]


async def test_a_token_of_a_profile_that_may_not_be_read_is_a_warning(by_profile: Declared, tmp_path: Path) -> None:
    """The profile is read, and its Secret is not."""
    where = await with_rights(by_profile.clusters, tmp_path, ("fleet", ("get",), "clusterprofiles"))
    verdict, text = (await by_profile.check(where, "prod"))["declaration"]
    assert verdict == "warn"
    assert f"missing permission: get secrets prod-token in namespace {HOME}" in text


@pytest.mark.slow
async def test_every_provider_of_a_profile_is_followed(by_profile: Declared) -> None:
    """A kubeconfig in a Secret beside it, OCM's token of the recorded account, a Secret that is not there."""
    clusters, api = by_profile.clusters, by_profile.clusters.management.api
    beside, kubeconfig = "/api/v1/namespaces/fleet/secrets", by_profile.kubeconfig
    await api.create(beside, {"metadata": {"name": "kube"}, "data": {"config": encoded(kubeconfig)}})
    await says(clusters, kubeconfig, KUBECONFIG_READER, {"name": "kube", "namespace": "fleet", "key": "config"})
    assert (await by_profile.check())["identity"][0] == "ok"

    token = {"token": encoded(yaml.safe_load(kubeconfig)["users"][0]["user"]["token"].encode())}
    key, _, value = OCM_SELECTOR.partition("=")
    for name, data in (("prod-mirror", token), ("prod-other", {"token": "bm8="})):
        await api.create(beside, {"metadata": {"name": name, "labels": {key: value}}, "data": data})
    await says(clusters, kubeconfig, OCM, {})
    assert (await by_profile.check())["declaration"][1].startswith("ClusterProfile fleet/prod: several Secrets")
    await record(clusters, "ClusterProfile fleet/prod", account="mirror")
    assert (await by_profile.check())["identity"][0] == "ok"

    await says(clusters, kubeconfig, SECRET_READER, {"clusterName": "nowhere"})
    found = (await by_profile.check())["declaration"]
    assert found == ("fail", f"ClusterProfile fleet/prod: Secret {HOME}/nowhere not found")
    await says(clusters, kubeconfig, "exec-plugin", {})
    assert "unknown provider exec-plugin" in (await by_profile.check())["declaration"][1]


async def test_a_command_in_somebodys_kubeconfig_is_never_run(by_secret: Declared) -> None:
    """The manager's policy holds here, too (D18)."""
    document = yaml.safe_load(by_secret.kubeconfig)
    document["users"][0]["user"] = {"exec": {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}}
    data = {"value": encoded(yaml.safe_dump(document).encode())}
    await by_secret.clusters.management.api.merge(SECRET, {"data": data})
    verdict, text = (await by_secret.check())["kubeconfig"]
    assert verdict == "fail"
    assert "runs a command" in text
