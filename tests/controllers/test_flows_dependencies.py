"""What a Job's pods refer to goes along: ConfigMaps, Secrets and ServiceAccounts (D27)."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from doubles.jobs import Body, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import WAITING, RunningManager, World, manager_of

from mirror.controllers import dependency_rounds
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.targets import INSIDER, Target
from mirror.kinds.base import MirrorTransform
from mirror.kinds.dependencies import DependencyPolicy
from mirror.model import names

pytestmark = pytest.mark.looptime

ALL = "configmaps,secrets,serviceaccounts"
KINDS = frozenset(("ConfigMap", "Secret", "ServiceAccount"))
PLURALS = ("configmaps", "secrets", "serviceaccounts")


def training(name: str = "train", *, carry: str | None = ALL, optional: bool = False, **more: Any) -> Body:
    """A Job whose pods need one object of each kind."""
    container = {
        "name": "main",
        "image": "busybox",
        "envFrom": [{"configMapRef": {"name": "settings", "optional": optional}}],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "t", "optional": optional}}}],
    }
    pod = {"restartPolicy": "Never", "serviceAccountName": "builder", "containers": [container]}
    annotations = {names.CARRY: carry} if carry is not None else {}
    return job(name, annotations=annotations, template={"spec": pod}, **more)


def provide(world: World, *, settings: str = "a") -> None:
    """What it needs, on the management cluster."""
    put = world.management.server.put
    labels = {"team": "ml"}
    put("configmaps", {"metadata": {"name": "settings", "namespace": "default"}, "data": {"level": settings}})
    token = {"t": base64.b64encode(b"secret").decode()}
    metadata = {"name": "token", "namespace": "default", "labels": labels, "annotations": {"example.com/a": "b"}}
    put("secrets", {"metadata": metadata, "type": "Opaque", "data": token})
    put("serviceaccounts", {"metadata": {"name": "builder", "namespace": "default", "annotations": {"role": "admin"}}})


@asynccontextmanager
async def manager_on(world: World, *, interval: float = 60.0, **allowed: Any) -> AsyncIterator[RunningManager]:
    kinds = allowed.pop("kinds", KINDS)
    transform = MirrorTransform(world.origin, dependencies=DependencyPolicy(kinds, **allowed))
    async with manager_of(world, transform=transform, dependency_interval_seconds=interval) as manager:
        yield manager


@asynccontextmanager
async def one_worker(**allowed: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    world = World()
    world.add_worker("east")
    provide(world)
    async with manager_on(world, **allowed) as manager:
        yield world, manager


def copies(world: World, worker: str = "east") -> dict[str, Body]:
    """The objects on a worker that are not its own, by name."""
    server = world.workers[worker].server
    return {
        one["metadata"]["name"]: one
        for plural in PLURALS
        for one in server.all(plural)
        if names.ORIGIN in (one["metadata"].get("labels") or {})
    }


def owners(copy: Body) -> set[str]:
    return {owner["name"] for owner in copy["metadata"].get("ownerReferences") or ()}


def notes(copy: Body) -> list[str]:
    return [key for key in copy["metadata"]["annotations"] if key.startswith(names.COPIED_FOR)]


def progressing(world: World, name: str = "train") -> tuple[str, str] | None:
    """Status and reason of the condition Progressing."""
    listed = world.source(name)["status"].get("conditions") or ()
    return next(((one["status"], one["reason"]) for one in listed if one["type"] == names.PROGRESSING), None)


def shown_as_suspended(world: World, name: str = "train") -> bool:
    """Whether ``kubectl get jobs`` shows it as suspended, and not as running."""
    listed = world.source(name)["status"].get("conditions") or ()
    return any((one["type"], one["status"]) == ("Suspended", "True") for one in listed)


def collect(world: World, worker: str = "east") -> None:
    """What a worker's garbage collector does: remove owners that are gone, and what has lost its last."""
    server = world.workers[worker].server
    there = {one["metadata"]["uid"] for one in server.all("jobs")}
    for plural in PLURALS:
        for one in server.all(plural):
            named = one["metadata"].get("ownerReferences") or []
            left = [owner for owner in named if owner["uid"] in there]
            metadata = one["metadata"]
            if named and not left:
                server.remove(plural, metadata["name"], metadata["namespace"])
            elif len(left) < len(named):
                server.edit(plural, metadata["name"], partial(_own, owners=left), metadata["namespace"])


def _own(body: dict[str, Any], owners: list[dict[str, Any]]) -> None:
    body["metadata"].update(ownerReferences=owners)


async def test_what_pods_need_is_there_before_the_mirror_and_is_owned_by_it() -> None:
    """Contents only: labels and annotations may mean something to a worker, and be rights."""
    async with one_worker() as (world, manager):
        world.create(training())
        await manager.settle()
        assert world.mirrors() == ["east"]
        sent = [one.path.rpartition("/")[2] for one in world.workers["east"].writes() if one.verb == "create"]
        assert sorted(sent[:3]) == sorted(PLURALS)
        assert sent[3] == "jobs"
        made = copies(world)
        assert sorted(made) == ["builder", "settings", "token"]
        assert made["settings"]["data"] == {"level": "a"}
        assert made["token"]["type"] == "Opaque"
        for copy in made.values():
            assert owners(copy) == {"train"}
            assert copy["metadata"]["labels"] == {names.ORIGIN: world.origin}
            assert list(copy["metadata"]["annotations"]) == [names.COPY_OF]
        assert world.events() == ["Mirrored"]


async def test_without_the_annotation_nothing_goes_along_and_nothing_is_read() -> None:
    """The user has to ask for it."""
    async with one_worker() as (world, manager):
        world.create(training(carry=None))
        await manager.settle(100)
        assert world.mirrors() == ["east"]
        assert copies(world) == {}
        assert not [one for one in world.management.sent if "/secrets/token" in one.path]


async def test_without_the_setting_nothing_goes_along_and_nothing_is_read() -> None:
    """The operator has to allow it."""
    async with one_worker(kinds=frozenset()) as (world, manager):
        world.create(training())
        await manager.settle(100)
        assert world.mirrors() == ["east"]
        assert copies(world) == {}
        assert not [one for one in world.management.sent if "/secrets/token" in one.path]
        assert not [one for one in world.workers["east"].sent if "/secrets" in one.path]


async def test_what_the_settings_keep_here_is_told() -> None:
    """The Job runs: the worker may have the object. An event says what was not sent."""
    async with one_worker(kinds=frozenset(("ConfigMap",))) as (world, manager):
        world.create(training())
        await manager.settle()
        assert sorted(copies(world)) == ["settings"]
        assert world.mirrors() == ["east"]
        assert world.texts("DependencyNotCopied") == [
            "Secret token, ServiceAccount builder: not copied, since the settings (dependencies) forbid it"
        ]


async def test_namespaces_that_are_not_chosen_keep_what_they_have() -> None:
    """``dependencies.namespaces``."""
    async with one_worker(namespaces=("team-*",)) as (world, manager):
        world.create(training())
        await manager.settle()
        assert copies(world) == {}
        assert world.mirrors() == ["east"]


async def test_two_sources_share_a_copy_until_the_last_one_goes() -> None:
    """Several owners; the worker's garbage collector deletes it with the last."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        world.create(training("two"))
        await manager.settle()
        assert all(owners(copy) == {"one", "two"} for copy in copies(world).values())
        world.delete("one")
        await manager.settle()
        collect(world)
        assert all(owners(copy) == {"two"} for copy in copies(world).values())
        await manager.settle(100)
        assert len(copies(world)) == 3
        world.delete("two")
        await manager.settle()
        collect(world)
        await manager.settle(100)
        assert copies(world) == {}


async def test_a_change_follows_while_a_mirror_has_not_ended() -> None:
    """Within ``dependencies.interval``; not after the end."""
    async with one_worker() as (world, manager):
        world.create(training())
        await manager.settle()
        world.management.server.edit("configmaps", "settings", lambda body: body.update(data={"size": "9"}))
        await manager.settle(61)
        assert copies(world)["settings"]["data"] == {"size": "9"}
        assert owners(copies(world)["settings"]) == {"train"}

        world.controller("east").start("train")
        world.controller("east").complete("train")
        await manager.settle()
        world.management.server.edit("configmaps", "settings", lambda body: body.update(data={"size": "10"}))
        await manager.settle(130)
        assert copies(world)["settings"]["data"] == {"size": "9"}


REGISTRY = "kubernetes.io/dockerconfigjson"


def give_another_type(world: World) -> dict[str, str]:
    """Delete the Secret here and create it anew, which is the only way to another type; returns its data."""
    data = {".dockerconfigjson": base64.b64encode(b"{}").decode()}
    world.management.server.remove("secrets", "token")
    metadata = {"name": "token", "namespace": "default"}
    world.management.server.put("secrets", {"metadata": metadata, "type": REGISTRY, "data": data})
    return data


async def test_a_secret_of_another_type_is_made_anew_with_its_owners() -> None:
    """The type of a Secret never changes: as here, it is deleted and created, and what needs it keeps it."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        world.create(training("two"))
        await manager.settle()
        before = copies(world)
        data = give_another_type(world)
        await manager.settle(61)
        made = copies(world)
        assert (made["token"]["type"], made["token"]["data"]) == (REGISTRY, data)
        assert owners(made["token"]) == {"one", "two"}
        assert made["token"]["metadata"]["uid"] != before["token"]["metadata"]["uid"]
        assert made["settings"] == before["settings"]
        writes = world.writes()
        await manager.settle(61)
        assert world.writes() == writes
        world.delete("one")
        world.delete("two")
        await manager.settle()
        collect(world)
        await manager.settle(61)
        assert copies(world) == {}


async def test_a_new_job_does_not_wait_for_the_round_that_gives_a_secret_its_new_type() -> None:
    """What is there is of another type: it is made anew before the mirror, which then owns it beside the others."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        give_another_type(world)
        world.create(training("two"))
        await manager.settle(3)
        assert world.mirrors("two") == ["east"]
        assert copies(world)["token"]["type"] == REGISTRY
        assert owners(copies(world)["token"]) == {"one", "two"}
        assert notes(copies(world)["token"]) == []


async def test_a_secret_of_another_type_that_the_worker_refuses_leaves_the_copy_where_it_is() -> None:
    """Pods that run need it: nothing is deleted that could not be made again, and the refusal names it."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        before = copies(world)["token"]
        world.workers["east"].arrange("create", "secrets", forbidden(), times=99)
        give_another_type(world)
        world.create(training("two"))
        await manager.settle(61)
        assert copies(world)["token"] == before
        assert world.mirrors("two") == []
        (text, *_) = world.texts("DependencyRefused")
        assert text == "worker east: Secret token: not allowed (403 Forbidden)"
        world.workers["east"].restore()
        await manager.settle(130)
        assert copies(world)["token"]["type"] == REGISTRY
        assert world.mirrors("two") == ["east"]
        assert owners(copies(world)["token"]) == {"one", "two"}


async def test_a_copy_that_is_being_deleted_is_waited_for() -> None:
    """A finalizer of the worker's keeps it: nothing can take its place before it has gone, and the Job says so."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        server = world.workers["east"].server
        server.edit("secrets", "token", lambda body: body["metadata"].update(finalizers=["example.com/archive"]))
        give_another_type(world)
        await manager.settle(61)
        world.create(training("two"))
        await manager.settle(61)
        assert copies(world)["token"]["type"] == "Opaque"
        assert world.mirrors("two") == []
        assert "worker east: Secret token is being deleted there, and is of another type than here" in world.texts(
            "DependencyRefused"
        )
        server.edit("secrets", "token", lambda body: body["metadata"].pop("finalizers"))
        await manager.settle(200)
        assert copies(world)["token"]["type"] == REGISTRY
        assert owners(copies(world)["token"]) == {"one", "two"}


async def test_a_foreign_secret_of_another_type_is_never_replaced() -> None:
    """Nothing is deleted that is not ours (D1): that worker refuses the Job."""
    async with one_worker() as (world, manager):
        data = give_another_type(world)
        metadata = {"name": "token", "namespace": "default"}
        body = {"metadata": metadata, "type": "Opaque", "data": data}
        foreign = world.workers["east"].server.put("secrets", body)
        world.create(training())
        await manager.settle(130)
        assert world.workers["east"].server.get("secrets", "token") == foreign
        assert world.texts("DependencyConflict")[0] == (
            "worker east: Secret token exists there with other contents, and is not ours"
        )


async def test_a_copy_that_becomes_anothers_in_between_is_not_deleted() -> None:
    """By uid and version: what took its place, or was marked meanwhile, is looked at again."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        east = world.workers["east"]
        give_another_type(world)
        metadata = {"name": "token", "namespace": "default"}

        note, taken = east.faults.on_request, []

        def take_its_place(request: Request, target: Target) -> None:
            if (target.verb, target.plural) == ("delete", "secrets") and request.peer != INSIDER and not taken:
                taken.append(request)
                east.server.remove("secrets", "token")
                east.server.put("secrets", {"metadata": metadata, "type": "Opaque", "data": {}})
            note(request, target)

        east.faults.on_request = take_its_place
        await manager.settle(200)
        assert taken
        there = east.server.get("secrets", "token")
        assert (there["type"], there.get("data") or {}) == ("Opaque", {})
        assert names.ORIGIN not in (there["metadata"].get("labels") or {})


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.BREAK])
@pytest.mark.parametrize("verb", ["delete", "create"])
async def test_a_copy_that_is_half_made_anew_is_finished(verb: str, fault: Fault) -> None:
    """Whatever is lost on the way: the next round makes what is not there, and its owners are found again."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        world.workers["east"].arrange(verb, "secrets", fault)
        give_another_type(world)
        await manager.settle(200)
        assert copies(world)["token"]["type"] == REGISTRY
        assert owners(copies(world)["token"]) == {"one"}


async def test_a_round_without_changes_writes_and_reads_no_contents() -> None:
    """Each copy's original is asked for its version only."""
    async with one_worker() as (world, manager):
        world.create(training())
        await manager.settle(100)
        east, here = len(world.workers["east"].sent), len(world.management.sent)
        writes = world.writes()
        await manager.settle(60)
        assert world.writes() == writes
        listed = [one for one in world.workers["east"].sent[east:] if one.path.endswith(PLURALS)]
        assert [one.verb for one in listed] == ["list"] * 3
        asked = [one for one in world.management.sent[here:] if "/namespaces/default/" in one.path]
        assert len(asked) == 3


async def test_a_copy_that_somebody_changed_or_deleted_on_the_worker_is_put_right() -> None:
    """It is ours, and pods that start later need it."""
    async with one_worker() as (world, manager):
        world.create(training())
        await manager.settle()
        server = world.workers["east"].server
        server.edit("configmaps", "settings", lambda body: body.update(data={"level": "worker"}))
        server.remove("secrets", "token")
        await manager.settle(61)
        assert copies(world)["settings"]["data"] == {"level": "a"}
        assert owners(copies(world)["token"]) == {"train"}


async def test_a_foreign_object_with_the_same_contents_is_used_as_it_is() -> None:
    """It is neither marked, nor owned, nor deleted."""
    async with one_worker() as (world, manager):
        server = world.workers["east"].server
        foreign = server.put(
            "configmaps", {"metadata": {"name": "settings", "namespace": "default"}, "data": {"level": "a"}}
        )
        account = server.put(
            "serviceaccounts",
            {"metadata": {"name": "builder", "namespace": "default"}, "automountServiceAccountToken": False},
        )
        world.create(training())
        await manager.settle(100)
        assert world.mirrors() == ["east"]
        assert sorted(copies(world)) == ["token"]
        world.delete()
        await manager.settle(100)
        assert server.get("configmaps", "settings") == foreign
        assert server.get("serviceaccounts", "builder") == account


async def test_a_foreign_object_with_other_contents_leads_to_another_worker() -> None:
    """A definite refusal of the very first create (D5): nothing of it is changed."""
    world = World()
    east = world.add_worker("east")
    world.add_worker("west")
    provide(world)
    foreign = east.server.put(
        "configmaps", {"metadata": {"name": "settings", "namespace": "default"}, "data": {"level": "x"}}
    )
    async with manager_on(world) as manager:
        world.create(training())
        await manager.settle()
        assert world.mirrors() == ["west"]
        assert world.texts("DependencyConflict") == [
            "worker east: ConfigMap settings exists there with other contents, and is not ours"
        ]
        assert east.server.get("configmaps", "settings") == foreign
        assert len(copies(world, "west")) == 3
        await manager.settle(100)
        assert copies(world, "east") == {}  # what was made for it meanwhile


async def test_what_is_missing_here_is_waited_for() -> None:
    """The Job keeps its worker and says what it needs; once that appears it goes on by itself."""
    async with one_worker() as (world, manager):
        world.management.server.remove("secrets", "token")
        world.create(training())
        await manager.settle()
        assert world.placed() == "east"
        assert world.mirrors() == []
        assert progressing(world) == ("False", "DependencyMissing")
        assert world.annotation(WAITING) == "Secret token does not exist in the Job's namespace"
        assert copies(world) == {}
        assert world.events() == ["DependencyMissing"]
        assert shown_as_suspended(world)
        metadata = {"name": "token", "namespace": "default"}
        world.management.server.put("secrets", {"metadata": metadata, "type": "Opaque", "data": {}})
        await manager.settle(31)
        assert world.mirrors() == ["east"]
        assert progressing(world) is None
        assert world.annotation(WAITING) is None
        assert not shown_as_suspended(world)


@pytest.mark.parametrize("name", ["../../finance/secrets/bank", "token/x", "..", "No_Name", "x" * 254])
async def test_what_no_object_can_be_named_is_missing_and_not_asked_for(name: str) -> None:
    """API servers take any text as the name of a volume's Secret: in a path it would be another one (D22, D18)."""
    async with one_worker() as (world, manager):
        body = training()
        body["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": name}}]
        world.create(body)
        await manager.settle()
        assert progressing(world) == ("False", "DependencyMissing")
        asked = {one.path.partition("/secrets/")[2] for one in world.management.sent}
        assert asked == {"", "token"}
        assert world.mirrors() == []


async def test_what_is_optional_may_be_missing_and_comes_later() -> None:
    """As at home: the pods start without it."""
    async with one_worker() as (world, manager):
        world.management.server.remove("secrets", "token")
        world.management.server.remove("configmaps", "settings")
        world.create(training(optional=True))
        await manager.settle()
        assert world.mirrors() == ["east"]
        assert sorted(copies(world)) == ["builder"]
        metadata = {"name": "settings", "namespace": "default"}
        world.management.server.put("configmaps", {"metadata": metadata, "data": {"level": "late"}})
        await manager.settle(61)
        assert owners(copies(world)["settings"]) == {"train"}


@pytest.mark.parametrize("plural", PLURALS)
async def test_a_worker_that_refuses_a_copy_is_told_with_its_name(plural: str) -> None:
    """403: the right of this feature is missing there."""
    async with one_worker() as (world, manager):
        world.workers["east"].arrange("create", plural, forbidden(), times=99)
        world.create(training())
        await manager.settle()
        assert world.mirrors() == []
        assert world.placed() is None
        (text, *_) = world.texts("DependencyRefused")
        assert text.endswith(": not allowed (403 Forbidden)")
        assert text.startswith("worker east: ")
        world.workers["east"].restore()
        await manager.settle(30)
        assert world.mirrors() == ["east"]


async def test_what_may_not_be_read_here_is_told() -> None:
    """The right on the management cluster is missing."""
    async with one_worker() as (world, manager):
        world.management.arrange("get", "secrets", forbidden(), times=99)
        world.create(training())
        await manager.settle()
        assert progressing(world) == ("False", "DependencyRefused")
        text = "Secret token cannot be read on the management cluster: not allowed (403 Forbidden)"
        assert world.annotation(WAITING) == text


async def test_a_token_never_leaves() -> None:
    """It says who somebody is here."""
    async with one_worker() as (world, manager):
        world.management.server.edit(
            "secrets", "token", lambda body: body.update(type="kubernetes.io/service-account-token")
        )
        world.create(training())
        await manager.settle(100)
        assert progressing(world) == ("False", "DependencyRefused")
        assert copies(world) == {}


async def test_what_is_too_large_is_refused() -> None:
    """The text names it, not what is in it."""
    async with one_worker() as (world, manager):
        world.management.server.edit("configmaps", "settings", lambda body: body.update(data={"x": "y" * 2**20}))
        world.create(training())
        await manager.settle()
        assert world.annotation(WAITING) == "ConfigMap settings is larger than 1024 KiB"


async def test_an_annotation_that_names_something_else_is_refused() -> None:
    """D22: before it gets a worker."""
    async with one_worker() as (world, manager):
        world.create(training(carry="configmap"))
        await manager.settle()
        assert world.mirrors() == []
        assert "configmap is unknown" in (world.annotation(WAITING) or "")


async def test_pull_secrets_of_an_account_go_along_with_it() -> None:
    """The worker's admission writes them into its pods."""
    async with one_worker() as (world, manager):
        server = world.management.server
        server.edit("serviceaccounts", "builder", lambda body: body.update(imagePullSecrets=[{"name": "registry"}]))
        server.put("secrets", {"metadata": {"name": "registry", "namespace": "default"}, "data": {}})
        world.create(training())
        await manager.settle()
        assert sorted(copies(world)) == ["builder", "registry", "settings", "token"]
        assert copies(world)["builder"]["imagePullSecrets"] == [{"name": "registry"}]


async def test_a_change_of_a_pull_secret_follows() -> None:
    """No pod template names it: its account does."""
    async with one_worker() as (world, manager):
        server = world.management.server
        server.edit("serviceaccounts", "builder", lambda body: body.update(imagePullSecrets=[{"name": "registry"}]))
        server.put("secrets", {"metadata": {"name": "registry", "namespace": "default"}, "data": {"a": "YQ=="}})
        world.create(training())
        await manager.settle()
        server.edit("secrets", "registry", lambda body: body.update(data={"a": "Yg=="}))
        await manager.settle(61)
        assert copies(world)["registry"]["data"] == {"a": "Yg=="}


async def test_a_pull_secret_that_was_deleted_to_be_made_anew_is_made_once_it_can_be() -> None:
    """Nothing but the copy itself says who needs it: a finalizer of the worker's kept the deleted one for a while."""
    async with one_worker() as (world, manager):
        here, there = world.management.server, world.workers["east"].server
        here.edit("serviceaccounts", "builder", lambda body: body.update(imagePullSecrets=[{"name": "registry"}]))
        secret = {"metadata": {"name": "registry", "namespace": "default"}, "type": "Opaque", "data": {"a": "YQ=="}}
        here.put("secrets", secret)
        world.create(training())
        await manager.settle()
        there.edit("secrets", "registry", lambda body: body["metadata"].update(finalizers=["example.com/archive"]))
        here.remove("secrets", "registry")
        here.put("secrets", secret | {"type": "example.com/other"})
        await manager.settle(61)
        assert copies(world)["registry"]["metadata"].get("deletionTimestamp")
        there.edit("secrets", "registry", lambda body: body["metadata"].pop("finalizers"))
        assert "registry" not in copies(world)
        await manager.settle(130)
        assert copies(world)["registry"]["type"] == "example.com/other"
        assert owners(copies(world)["registry"]) == {"train"}


@pytest.mark.parametrize("kind", ["configmaps", "secrets", "serviceaccounts"])
@pytest.mark.parametrize("namespace", ["default", "finance"])
async def test_a_worker_is_sent_nothing_that_no_job_refers_to(kind: str, namespace: str) -> None:
    """D18: whoever may make objects on a worker could have what bears all marks of a copy filled, by its name."""
    async with one_worker() as (world, manager):
        here, there = world.management.server, world.workers["east"].server
        for server in (here, there) if namespace != "default" else ():
            server.put("namespaces", {"metadata": {"name": namespace}})
        for account in ("builder", "other"):  # one account is the Job's; the other one's Secrets are not
            body = {"metadata": {"name": account, "namespace": namespace}, "imagePullSecrets": [{"name": "bank"}]}
            if (account, namespace) != ("builder", "default"):
                here.put("serviceaccounts", body)
        here.put(kind, _bank(namespace))
        world.create(training())
        await manager.settle()
        mirror = there.get("jobs", "train")["metadata"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": mirror["uid"]}
        marks = {"labels": {names.ORIGIN: world.origin}, "annotations": {names.COPY_OF: "u/1"}}
        metadata = {"name": "bank", "namespace": namespace, "ownerReferences": [owner]} | marks
        forged = there.put(kind, {"metadata": metadata})
        await manager.settle(130)
        assert there.get(kind, "bank", namespace) == forged


def _bank(namespace: str) -> Body:
    """What is nobody's business on a worker."""
    return {
        "metadata": {"name": "bank", "namespace": namespace},
        "data": {"password": "aHVudGVyMg=="},
        "imagePullSecrets": [{"name": "hidden"}],
    }


async def test_a_missing_namespace_is_made_where_that_is_allowed() -> None:
    """As for a mirror, and before it."""
    world = World()
    east = world.add_worker("east")
    server = world.management.server
    server.put("namespaces", {"metadata": {"name": "ml"}})
    server.put("configmaps", {"metadata": {"name": "settings", "namespace": "ml"}, "data": {}})
    transform = MirrorTransform(world.origin, dependencies=DependencyPolicy(frozenset(("ConfigMap",))))
    async with manager_of(world, transform=transform, create_namespaces=True) as manager:
        body = training(carry="configmaps")
        body["metadata"]["namespace"] = "ml"
        world.create(body)
        await manager.settle()
        assert world.mirrors("train", "ml") == ["east"]
        assert east.server.find("configmaps", "settings", "ml") is not None


FAULTS = [
    pytest.param(verb, plural, fault, id=f"{verb} {plural}: {fault.name.lower()}")
    for verb, plural in (("create", "configmaps"), ("create", "jobs"), ("patch", "secrets"))
    for fault in (Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.BREAK)
]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "plural", "fault"), FAULTS)
async def test_a_manager_that_dies_at_any_point_leaves_no_copy_without_owner(
    verb: str, plural: str, fault: Fault
) -> None:
    """Another one finishes what was begun."""
    world = World()
    east = world.add_worker("east")
    provide(world)
    east.arrange(verb, plural, fault)
    async with manager_on(world) as manager:
        world.create(training())
        await manager.settle(0.02)
    async with manager_on(world) as manager:
        await manager.settle(120)
        assert world.mirrors() == ["east"]
        assert {name: (owners(copy), notes(copy)) for name, copy in copies(world).items()} == {
            name: ({"train"}, []) for name in ("builder", "settings", "token")
        }


async def test_copies_of_a_source_that_went_before_its_mirror_was_made_are_deleted() -> None:
    """Nobody owns them: the sweep asks for the source and deletes them."""
    world = World()
    east = world.add_worker("east")
    provide(world)
    east.arrange("create", "jobs", Fault.BREAK, times=99)
    async with manager_on(world) as manager:
        world.create(training())
        await manager.settle(0.1)
        assert len(copies(world)) == 3
    world.delete()
    east.restore()
    async with manager_on(world) as manager:
        await manager.settle(61)
        assert copies(world) == {}
        assert east.server.find("serviceaccounts", "builder") is None


async def test_a_sweep_that_would_delete_too_much_halts() -> None:
    """D10: as for mirrors."""
    world = World()
    east = world.add_worker("east")
    for number in range(25):
        annotations = {names.COPY_OF: "u/1", f"{names.COPIED_FOR}u{number}": f"Job/j{number}"}
        metadata = {"name": f"c{number}", "namespace": "default", "annotations": annotations}
        east.server.put("configmaps", {"metadata": metadata | {"labels": {names.ORIGIN: world.origin}}})
    async with manager_on(world) as manager:
        await manager.settle(130)
        assert len(copies(world)) == 25
        assert world.events() == ["SweepHalted"]


async def test_a_worker_that_lists_too_much_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: what it says it has is bounded, and nothing is concluded from a part of it."""
    monkeypatch.setattr(dependency_rounds, "MOST_LISTED_BYTES", 4000)
    async with one_worker() as (world, manager):
        world.create(training())
        await manager.settle()
        for number in range(9):
            metadata = {"name": f"c{number}", "namespace": "default", "annotations": {names.COPY_OF: "u/1"}}
            world.workers["east"].server.put(
                "configmaps", {"metadata": metadata | {"labels": {names.ORIGIN: world.origin}}}
            )
        writes = world.writes()
        await manager.settle(130)
        assert world.writes() == writes
        assert len(copies(world)) == 12


async def test_another_managements_copy_is_foreign() -> None:
    """Its origin is not ours (D1)."""
    async with one_worker() as (world, manager):
        metadata = {"name": "settings", "namespace": "default", "annotations": {names.COPY_OF: "u/1"}}
        body = {"metadata": metadata | {"labels": {names.ORIGIN: "another"}}, "data": {"level": "other"}}
        there = world.workers["east"].server.put("configmaps", body)
        world.create(training())
        await manager.settle(100)
        assert world.workers["east"].server.get("configmaps", "settings") == there
        assert world.mirrors() == []


async def test_a_server_failure_while_copying_is_tried_again() -> None:
    """Nothing is concluded from it."""
    async with one_worker() as (world, manager):
        world.workers["east"].arrange("create", "secrets", Refused(503, "ServiceUnavailable"), times=2)
        world.create(training())
        await manager.settle(10)
        assert world.mirrors() == ["east"]
        assert world.placed() == "east"
        assert all(owners(copy) == {"train"} for copy in copies(world).values())


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Refused(409, "Conflict"), id="a conflict"),
        pytest.param(Refused(503, "ServiceUnavailable"), id="a failing server"),
        pytest.param(Fault.LOSE_ANSWER, id="a lost answer"),
    ],
)
async def test_a_record_that_does_not_go_well_is_tried_again(fault: Refused | Fault) -> None:
    """What goes along is read meanwhile, and hides no error of the write."""
    async with one_worker() as (world, manager):
        world.management.arrange("patch", "jobs", fault)
        world.create(training())
        await manager.settle(40)
        assert world.mirrors() == ["east"]
        assert all(owners(copy) == {"train"} for copy in copies(world).values())
        assert len(copies(world)) == 3


async def test_copies_are_made_while_the_worker_is_recorded_and_mirrors_only_after_it() -> None:
    """Nothing but the mirror waits for the record (D5); copies of a source that goes meanwhile are swept."""
    async with one_worker() as (world, manager):
        world.management.arrange("patch", "jobs", Fault.HANG)
        world.create(training())
        await manager.settle(0.5)
        assert sorted(copies(world)) == ["builder", "settings", "token"]
        assert all(len(notes(copy)) == 1 for copy in copies(world).values())
        assert world.mirrors() == []
        world.delete()
        await manager.settle(130)
        assert copies(world) == {}


async def test_a_worker_that_does_not_copy_in_time_keeps_no_other_job_from_being_recorded() -> None:
    """D12: after the first one nothing is copied ahead to it, for a while."""
    async with one_worker() as (world, manager):
        world.workers["east"].arrange("create", "configmaps", Fault.HANG, times=99)
        world.create(training("one"))
        await manager.settle(0.5)
        assert world.source("one")["status"].get("conditions")
        await manager.settle(1)
        world.create(training("two"))
        await manager.settle(0.1)
        assert world.placed("two") == "east"
        asked = [one for one in world.workers["east"].sent if one.path.endswith("configmaps") and one.verb == "create"]
        world.workers["east"].restore()
        await manager.settle(60)
        assert len(asked) <= 3
        assert world.mirrors("two") == ["east"]
        assert world.mirrors("one") == ["east"]


async def test_a_shared_copy_costs_a_read_here_and_one_write_there() -> None:
    """§4: what is read is read while the worker is recorded; a copy that is there gets another owner."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        here, there = len(world.management.sent), len(world.workers["east"].sent)
        world.create(training("two"))
        await manager.settle()
        read = [one for one in world.management.sent[here:] if one.verb == "get"]
        written = [
            one.verb for one in world.workers["east"].sent[there:] if one.verb != "get" or "/default/" in one.path
        ]
        assert len(read) == 3
        assert written == ["create", "patch", "patch", "patch"]


async def test_a_shared_copy_that_goes_at_the_last_moment_is_made_again() -> None:
    """Its last owner went, and the collector with it, before the next mirror owned it."""
    async with one_worker() as (world, manager):
        world.create(training("one"))
        await manager.settle()
        world.delete("one")
        await manager.settle()
        collect(world)
        assert copies(world) == {}
        world.create(training("two"))
        await manager.settle()
        assert sorted(copies(world)) == ["builder", "settings", "token"]
        assert all(owners(copy) == {"two"} for copy in copies(world).values())


async def test_nothing_is_kept_of_sources_that_are_gone() -> None:
    """D29: what was read for them, and what is known of their copies."""
    async with one_worker() as (world, manager):
        for number in range(5):
            world.create(training(f"j{number}"))
            await manager.settle(0.005)
            world.delete(f"j{number}")
        await manager.settle(10)
        collect(world)
        await manager.settle(130)
        dependencies = manager.mirroring._parts.applier._mirrors._dependencies
        assert dependencies is not None
        assert copies(world) == {}
        assert dependencies.known == {}
        assert not dependencies._locks
        assert len(dependencies.ahead) == 0
