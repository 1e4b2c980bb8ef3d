"""Workers that others declare: Secrets of Cluster API and the like, and ClusterProfiles (D15, D18, D19)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from doubles.jobs import Body, job
from doubles.loglines import captured
from doubles.managers import HOME
from doubles.profiles import definition, profile, secret
from doubles.refusals import forbidden
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of

from mirror.model import names
from mirror.settings.schema import ClusterProfiles, SecretSource
from mirror.workers.cluster_profiles import KUBECONFIG_READER, OCM, SECRET_READER
from mirror.workers.inventory import FORMER

pytestmark = pytest.mark.looptime

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
CAPI_TYPE = "cluster.x-k8s.io/secret"
CAPI = SecretSource(
    label_selector=CLUSTER_NAME, namespaces=("clusters",), key="value", name_from_label=CLUSTER_NAME, type=CAPI_TYPE
)
CREDENTIALS = {"authentication.open-cluster-management.io/is-clusterprofile-creds": "true"}
PROFILES = ClusterProfiles(enabled=True, namespaces=("fleet",))


def world_with(*clusters: str) -> World:
    world = World()
    for namespace in ("clusters", "fleet", "other"):
        world.management.server.put("namespaces", {"metadata": {"name": namespace}})
    for name in clusters:
        world.add_cluster(name)
    return world


def declare(
    world: World,
    name: str,
    *,
    leads_to: str = "",
    secret_name: str = "",
    namespace: str = "clusters",
    annotations: Mapping[str, str] | None = None,
    **labels: str,
) -> None:
    """A kubeconfig as Cluster API writes it."""
    body = secret(
        secret_name or f"{name}-kubeconfig",
        namespace,
        labels={CLUSTER_NAME: name, **labels},
        value=leads_to or name,
    )
    body["metadata"]["annotations"] = {names.PREFIX + key: value for key, value in (annotations or {}).items()}
    world.management.server.put("secrets", {**body, "type": CAPI_TYPE})


def edit_secret(world: World, name: str, change: Callable[[Body], None], namespace: str = "clusters") -> None:
    world.management.server.edit("secrets", name, change, namespace)


def entry(world: World, worker: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.record()[worker])
    return found


def about(world: World, reason: str) -> list[tuple[str, str]]:
    """Kind and name of what events with this reason are about."""
    events = [event for event in world.management.server.all("events") if event["reason"] == reason]
    return [(event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in events]


def is_up(manager: RunningManager, worker: str) -> bool:
    found = manager.registry.workers.get(worker)
    return found is not None and found.is_reachable


# -- Secrets of others -------------------------------------------------------------------------------------------------


async def test_a_secret_of_cluster_api_is_a_worker_that_takes_jobs() -> None:
    """In another namespace, with another key, named by its label; its labels are the worker's."""
    world = world_with("prod")
    declare(world, "prod", region="eu")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        world.create(job(annotations={names.WORKER_SELECTOR: f"region=eu,{CLUSTER_NAME}=prod,name=prod"}))
        await manager.settle(2)
        assert world.mirrors() == ["prod"]
        world.controller("prod").start("train")
        await manager.settle(1)
        assert world.source()["status"]["active"] == 1
        assert entry(world, "prod")["declared"]["by"] == "Secret clusters/prod-kubeconfig"
        assert entry(world, "prod")["declared"]["key"] == "value"  # for commands, which know no settings
        # No Secret of ours registers it, so no token is ever written into one (``renewing``).
        assert manager.registry.secret_of("prod") is None


async def test_what_else_cluster_api_labels_declares_nothing() -> None:
    """Certificates and keys of accounts have the label and the type, but not the key; others have not the type."""
    world = world_with("prod")
    server = world.management.server
    server.put("secrets", {**secret("prod-ca", "clusters", labels={CLUSTER_NAME: "prod"}, crt="x"), "type": CAPI_TYPE})
    server.put("secrets", secret("opaque", "clusters", labels={CLUSTER_NAME: "opaque"}, value="prod"))
    server.put("secrets", {**secret("plain", "clusters", value="prod"), "type": CAPI_TYPE})
    declare(world, "elsewhere", namespace="other")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(5)
        assert dict(manager.registry.workers) == {}
        assert world.events() == []


async def test_only_what_is_needed_of_such_a_secret_is_kept() -> None:
    """Labels, our annotations, and one key."""
    world = world_with("prod")
    declare(world, "prod")

    def add(body: Body) -> None:
        body["data"]["other"] = "c2VjcmV0"
        body["metadata"]["annotations"] = {"example.com/big": "x" * 1000}

    edit_secret(world, "prod-kubeconfig", add)
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle()
        origin = manager.registry.origin_of("prod")
        assert origin is not None
        assert origin.found.data_dict().keys() == {"value"}
        assert origin.found.annotations == {}


async def test_annotations_on_such_a_secret_mean_what_they_mean_on_ours() -> None:
    """Cordoned, capacity, a prefix; a mistake is told on the Secret, and stops new Jobs."""
    world = world_with("prod", "dev")
    world.workers["prod"].server.put("namespaces", {"metadata": {"name": "run-default"}})
    declare(world, "prod", annotations={"namespace-prefix": "run-", "capacity": "1"})
    declare(world, "dev", annotations={"cordoned": "true"})
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        world.create(job())
        world.create(job("second"))
        await manager.settle(2)
        assert world.mirror("prod", namespace="run-default") is not None
        assert world.placed("second") is None
        assert entry(world, "prod")["declared"]["capacity"] == 1
        assert entry(world, "dev")["declared"]["cordoned"] is True

        key = names.PREFIX + "capacity"
        edit_secret(world, "prod-kubeconfig", lambda body: body["metadata"]["annotations"].update({key: "many"}))
        await manager.settle(2)
        assert about(world, "BadAnnotation") == [("Secret", "prod-kubeconfig")]
        assert entry(world, "prod")["declared"]["misconfigured"] is True


async def test_a_kubeconfig_that_is_replaced_is_used_and_another_cluster_is_refused() -> None:
    """D19: Cluster API rewrites it before its certificate ends; the cluster's uid decides whether it is the same."""
    world = world_with("prod", "next")
    declare(world, "prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        world.create(job())
        await manager.settle(2)
        world.workers["prod-again"] = world.workers["prod"]  # the same cluster at another address
        new = secret("x", "clusters", value="prod-again")["data"]
        edit_secret(world, "prod-kubeconfig", lambda body: body.update(data=new))
        await manager.settle(2)
        worker = manager.registry.workers["prod"]
        assert worker.is_reachable
        assert worker.spec is not None
        assert worker.spec.kubeconfig == b"prod-again"

        other = secret("x", "clusters", value="next")["data"]
        edit_secret(world, "prod-kubeconfig", lambda body: body.update(data=other))
        await manager.settle(20)
        assert not is_up(manager, "prod")
        assert about(world, "IdentityRejected") == [("Secret", "prod-kubeconfig")]
        assert world.placed() == "prod"


async def test_such_a_secret_that_vanishes_is_a_loss_and_evicts_nothing() -> None:
    """D15: its Jobs wait for it; when it is back they go on."""
    world = world_with("prod")
    declare(world, "prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        world.create(job())
        await manager.settle(2)
        world.management.server.remove("secrets", "prod-kubeconfig", "clusters")
        await manager.settle(100)
        assert not is_up(manager, "prod")
        assert (world.placed(), world.mirrors()) == ("prod", ["prod"])
        assert "its Secret was deleted" in entry(world, "prod")["reason"]

        declare(world, "prod")
        await manager.settle(5)
        assert is_up(manager, "prod")


async def test_a_secret_that_loses_its_key_is_a_loss_too() -> None:
    """It declares nothing any more."""
    world = world_with("prod")
    declare(world, "prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(2)
        edit_secret(world, "prod-kubeconfig", lambda body: body.update(data={}))
        await manager.settle(2)
        assert not is_up(manager, "prod")
        await manager.settle(70)
        assert "prod" not in manager.registry.workers


async def test_a_name_that_is_taken_is_refused_for_the_younger_one() -> None:
    """It is told where its author looks, and over a restart the same one counts."""
    world = world_with("prod", "evil")
    declare(world, "prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(2)
        declare(world, "prod", leads_to="evil", secret_name="a-younger-one")
        await manager.settle(2)
        assert is_up(manager, "prod")
        assert about(world, "WorkerNameTaken") == [("Secret", "a-younger-one")]
        assert "Secret clusters/prod-kubeconfig" in world.texts("WorkerNameTaken")[0]
        assert "Secret clusters/a-younger-one" in entry(world, "prod")["remark"]
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(5)
        assert is_up(manager, "prod")

        # Once the first is gone the other has the name, and the recorded uid decides.
        world.management.server.remove("secrets", "prod-kubeconfig", "clusters")
        await manager.settle(20)
        assert not is_up(manager, "prod")
        assert "IdentityRejected" in world.events()


async def test_our_own_secret_comes_before_all_others() -> None:
    """What an operator has registered nobody in another namespace can take over."""
    world = world_with("prod", "evil")
    declare(world, "prod", leads_to="evil")
    async with manager_of(world) as manager:
        await manager.settle(2)
    world.register("prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(2)
        worker = manager.registry.workers["prod"]
        assert worker.spec is not None
        assert worker.spec.kubeconfig == b"prod"
        assert about(world, "WorkerNameTaken") == [("Secret", "prod-kubeconfig")]
        assert "declared" not in entry(world, "prod")


def put_word(world: World, name: str, word: str) -> None:
    """As ``mirror worker forget`` does where nothing declares the worker."""
    annotations = {names.GONE: word}
    body = {"metadata": {"name": name, "namespace": HOME, "labels": {names.WORKER: "true"}, "annotations": annotations}}
    world.management.server.put("secrets", body)


@pytest.mark.parametrize("word", ["false", "true"])
async def test_what_takes_back_that_a_worker_is_dead_makes_way(word: str) -> None:
    """D14: what declares it is back, and its Jobs go on; that it is dead holds until somebody takes it back."""
    world = world_with("prod")
    declare(world, "prod")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        world.create(job())
        await manager.settle(2)
        world.management.server.remove("secrets", "prod-kubeconfig", "clusters")
        put_word(world, "prod", word)
        await manager.settle(5)
        assert not is_up(manager, "prod")
        declare(world, "prod")
        await manager.settle(5)
        assert is_up(manager, "prod") is (word == "false")
        if word == "true":
            world.management.server.edit(
                "secrets", "prod", lambda body: body["metadata"]["annotations"].update({names.GONE: "false"}), HOME
            )
            await manager.settle(5)
        assert is_up(manager, "prod")
        assert entry(world, "prod")["declared"]["by"] == "Secret clusters/prod-kubeconfig"
        assert f"Secret {HOME}/prod, which is ignored" in entry(world, "prod")["remark"]
        assert ("Secret", "prod") in about(world, "WorkerNameTaken")
        assert (
            "worker prod is declared by Secret clusters/prod-kubeconfig already; this one is ignored, since it has no "
            "kubeconfig; it may be deleted"
        ) in world.texts("WorkerNameTaken")
        assert world.mirrors() == ["prod"]


async def test_one_secret_of_two_sources_is_one_worker() -> None:
    """The same object is no second one."""
    world = world_with("prod")
    declare(world, "prod")
    wide = SecretSource(
        label_selector=CLUSTER_NAME, namespaces=("clusters",), key="value", name_from_label=CLUSTER_NAME
    )
    async with manager_of(world, secret_sources=(CAPI, wide)) as manager:
        await manager.settle(2)
        assert is_up(manager, "prod")
        assert world.events() == []


async def test_a_secret_whose_label_is_no_name_is_told() -> None:
    """A label's value may have capitals and underscores, a worker's name may not."""
    world = world_with("prod")
    declare(world, "Prod_1", leads_to="prod", secret_name="odd")
    async with manager_of(world, secret_sources=(CAPI,)) as manager:
        await manager.settle(2)
        assert dict(manager.registry.workers) == {}
        assert about(world, "WorkerNameInvalid") == [("Secret", "odd")]


async def test_a_namespace_that_may_not_be_read_delays_nobody_else() -> None:
    """The right is missing: our own workers work, the log says so, and what was there is not forgotten."""
    world = world_with("prod")
    world.add_worker("east")
    world.create(job())
    world.management.arrange("watch", "secrets", forbidden(), times=2)
    refused = SecretSource(label_selector="a=b", namespaces=("other",))
    async with manager_of(world, secret_sources=(refused,)) as manager:
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        assert manager.registry.others_refused_because == ""


async def test_off_means_no_request() -> None:
    """Nothing of others is looked at unless the settings want it."""
    world = world_with("prod")
    declare(world, "prod")
    async with manager_of(world) as manager:
        await manager.settle(100)
        paths = {sent.path for sent in world.management.sent if "secrets" in sent.path or "multicluster" in sent.path}
        assert paths == {f"/api/v1/namespaces/{HOME}/secrets"}


# -- ClusterProfiles ---------------------------------------------------------------------------------------------------


async def serve_profiles(world: World) -> None:
    world.management.server.put("customresourcedefinitions", definition())
    await asyncio.sleep(0)  # definitions are settled in the next turn of the loop
    await asyncio.sleep(0)


def kubeconfig_with(user: Mapping[str, Any]) -> str:
    document = {
        "current-context": "none",
        "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://somewhere.example"}}],
        "users": [{"name": "u", "user": dict(user)}],
    }
    return json.dumps(document)


@pytest.mark.parametrize("field", ["accessProviders", "credentialProviders"])
async def test_a_profile_with_a_token_in_a_secret_of_ours(field: str) -> None:
    """``secretreader``; labels, properties and the version are the worker's labels, annotations work."""
    world = world_with("east")
    await serve_profiles(world)
    world.management.server.put("secrets", secret("east-token", HOME, token="t0k3n\n"))
    body = profile(
        "east",
        SECRET_READER,
        {"clusterName": "east-token"},
        field=field,
        metadata={"labels": {"region": "eu"}, "annotations": {names.CAPACITY: "3"}},
        properties=[{"name": "topology.example/zone", "value": "a"}, {"name": "bad value", "value": "b c"}],
        version={"kubernetes": "v1.33.1+k3s1"},
    )
    world.management.server.put("clusterprofiles", body)
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        selector = "region=eu,topology.example/zone=a,kubernetes-version=v1.33.1-k3s1"
        world.create(job(annotations={names.WORKER_SELECTOR: selector}))
        await manager.settle(2)
        assert world.mirrors() == ["east"]
        assert world.users["east"] == {"token": "t0k3n"}
        labels = {"name": "east", "region": "eu", "topology.example/zone": "a", "kubernetes-version": "v1.33.1-k3s1"}
        shown = {"by": "ClusterProfile fleet/east", "capacity": 3, "labels": labels}
        assert entry(world, "east")["declared"] == shown


async def test_a_profile_with_a_kubeconfig_in_a_secret_beside_it() -> None:
    """``kubeconfig-secretreader``: only the user counts, of the context that is named."""
    world = world_with("east")
    await serve_profiles(world)
    world.management.server.put("secrets", secret("admin", "fleet", config=kubeconfig_with({"token": "abc"})))
    wanted = {"name": "admin", "key": "config", "namespace": "fleet", "context": "admin"}
    world.management.server.put("clusterprofiles", profile("east", KUBECONFIG_READER, wanted))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(2)
        assert is_up(manager, "east")
        assert world.users["east"] == {"token": "abc"}


async def test_the_secret_of_open_cluster_management_is_followed_when_it_is_rotated() -> None:
    """CLUSTER-ACCOUNT beside the profile, with its label; no Job notices a new token."""
    world = world_with("east")
    await serve_profiles(world)
    server = world.management.server
    server.put("secrets", secret("east-robot", "fleet", labels=CREDENTIALS, token="first"))
    server.put("secrets", secret("east-unlabelled", "fleet", token="wrong"))
    server.put("clusterprofiles", profile("east", OCM, {}))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(2)
        assert world.users["east"] == {"token": "first"}
        server.edit("secrets", "east-robot", lambda body: body["data"].update(token="c2Vjb25k"), "fleet")
        await manager.settle(45)
        assert is_up(manager, "east")
        assert world.users["east"] == {"token": "second"}


async def test_whose_secret_a_profile_means_is_recorded_for_commands() -> None:
    """They know no settings."""
    world = world_with("east")
    await serve_profiles(world)
    for account in ("robot", "other"):
        body = secret(f"east-{account}", "fleet", labels=CREDENTIALS, token=account)
        world.management.server.put("secrets", body)
    world.management.server.put("clusterprofiles", profile("east", OCM, {}))
    settings = ClusterProfiles(enabled=True, namespaces=("fleet",), managed_service_account="robot")
    async with manager_of(world, cluster_profiles=settings) as manager:
        await manager.settle(2)
        assert world.users["east"] == {"token": "robot"}
        assert entry(world, "east")["declared"]["account"] == "robot"


async def test_profiles_that_are_served_later_are_found() -> None:
    """The definition is missing: nothing happens and nothing is said; installed later, it is picked up."""
    world = world_with("east")
    world.add_worker("west")
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        with captured() as lines:
            world.create(job(annotations={names.WORKER_SELECTOR: "name=west"}))
            await manager.settle(300)
            assert world.mirrors() == ["west"]
            assert not [line for line in lines if "profile" in str(line)]
        asked = [sent for sent in world.management.sent if "multicluster" in sent.path]
        assert 4 <= len(asked) <= 7

        await serve_profiles(world)
        world.management.server.put("secrets", secret("east", HOME, token="abc"))
        world.management.server.put("clusterprofiles", profile("east", SECRET_READER, {"clusterName": "east"}))
        await manager.settle(70)
        assert is_up(manager, "east")


async def test_a_profile_that_vanishes_is_a_loss() -> None:
    """D15: nothing is evicted; without Jobs the worker is forgotten."""
    world = world_with("east")
    await serve_profiles(world)
    server = world.management.server
    server.put("secrets", secret("east", HOME, token="abc"))
    body = profile("east", SECRET_READER, {"clusterName": "east"})
    server.put("clusterprofiles", body)
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        world.create(job())
        await manager.settle(2)
        server.remove("clusterprofiles", "east", "fleet")
        await manager.settle(100)
        assert not is_up(manager, "east")
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert "its ClusterProfile was deleted" in entry(world, "east")["reason"]
        server.put("clusterprofiles", body)
        await manager.settle(5)
        assert is_up(manager, "east")
        world.delete()
        server.remove("clusterprofiles", "east", "fleet")
        await manager.settle(100)
        assert not [name for name in world.record() if not name.startswith(FORMER)]


async def test_a_definition_that_is_removed_is_a_loss_of_all_its_workers() -> None:
    """As if each profile had been deleted."""
    world = world_with("east")
    await serve_profiles(world)
    server = world.management.server
    server.put("secrets", secret("east", HOME, token="abc"))
    server.put("clusterprofiles", profile("east", SECRET_READER, {"clusterName": "east"}))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        world.create(job())
        await manager.settle(2)
        server.remove("clusterprofiles", "east", "fleet")
        server.remove("customresourcedefinitions", definition()["metadata"]["name"])
        world.management.break_watches()
        await manager.settle(60)
        assert not is_up(manager, "east")
        assert world.mirrors() == ["east"]


@pytest.mark.parametrize(
    ("provider", "extension", "told"),
    [
        pytest.param("gke-gcloud-auth-plugin", {}, "unknown provider gke-gcloud-auth-plugin; supported:", id="exec"),
        pytest.param(SECRET_READER, {}, "clusterName: is missing", id="nothing said"),
        pytest.param(SECRET_READER, {"clusterName": "none"}, f"Secret {HOME}/none not found", id="no such Secret"),
        pytest.param(SECRET_READER, {"clusterName": "west"}, "is the manager's own", id="another worker's Secret"),
        pytest.param(
            KUBECONFIG_READER,
            {"name": "x", "key": "y", "namespace": "kube-system"},
            "may be jobmirror-system or the profile's own",
            id="a namespace that its author may not read",
        ),
        pytest.param(OCM, {}, "no Secret east-ACCOUNT with label", id="nothing copied yet"),
    ],
)
async def test_a_profile_that_is_of_no_use_says_why(provider: str, extension: Body, told: str) -> None:
    """On the profile, and in the list of workers; nothing is connected to."""
    world = world_with("east")
    world.add_worker("west")
    await serve_profiles(world)
    world.management.server.put("clusterprofiles", profile("east", provider, extension))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(5)
        assert not is_up(manager, "east")
        assert told in entry(world, "east")["reason"]
        assert about(world, "WorkerLost") == [("ClusterProfile", "east")]
        assert world.workers["east"].sent == []


async def test_a_profile_that_is_of_no_use_may_say_that_its_worker_is_dead() -> None:
    """D14: the Secret that it names went with the cluster; who says so is heard all the same."""
    world = world_with("east", "west")
    await serve_profiles(world)
    server = world.management.server
    server.put("secrets", secret("east", HOME, token="abc"))
    server.put("clusterprofiles", profile("east", SECRET_READER, {"clusterName": "east"}))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        world.create(job())
        await manager.settle(2)
        world.workers["east"].go_down()
        server.remove("secrets", "east", HOME)
        await manager.settle(70)
        world.register("west")
        await manager.settle(5)
        assert world.placed() == "east"
        dead = {names.GONE: "true"}
        server.edit("clusterprofiles", "east", lambda body: body["metadata"].update(annotations=dead), "fleet")
        await manager.settle(10)
        assert world.placed() == "west"


async def test_a_kubeconfig_with_a_command_is_refused() -> None:
    """D18: never exec by inventory, whatever the kubeconfig says."""
    world = world_with("east")
    await serve_profiles(world)
    user = {"exec": {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}}
    world.management.server.put("secrets", secret("admin", HOME, config=kubeconfig_with(user)))
    wanted = {"name": "admin", "key": "config", "context": "admin"}
    world.management.server.put("clusterprofiles", profile("east", KUBECONFIG_READER, wanted))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(5)
        assert "users[0].user.exec: runs a command" in entry(world, "east")["reason"]
        assert world.workers["east"].sent == []


async def test_a_control_plane_that_is_not_healthy_is_shown() -> None:
    """What its cluster manager says is a remark: our own look at the worker decides."""
    world = world_with("east")
    await serve_profiles(world)
    world.management.server.put("secrets", secret("east", HOME, token="abc"))
    condition = {"type": "ControlPlaneHealthy", "status": "False", "reason": "Gone", "message": "no answer"}
    body = profile("east", SECRET_READER, {"clusterName": "east"}, conditions=[condition])
    world.management.server.put("clusterprofiles", body)
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(2)
        assert is_up(manager, "east")
        assert entry(world, "east")["remark"] == "ControlPlaneHealthy is False: Gone: no answer"


async def test_a_secret_that_cannot_be_read_for_a_while_changes_nothing() -> None:
    """An outage of the management cluster is no reason to lose workers."""
    world = world_with("east")
    await serve_profiles(world)
    world.management.server.put("secrets", secret("east", HOME, token="abc"))
    world.management.server.put("clusterprofiles", profile("east", SECRET_READER, {"clusterName": "east"}))
    async with manager_of(world, cluster_profiles=PROFILES) as manager:
        await manager.settle(2)
        world.management.arrange("get", "secrets", Fault.BREAK, times=50)
        await manager.settle(100)
        assert is_up(manager, "east")
        assert world.events() == []
