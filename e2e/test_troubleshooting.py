"""docs/troubleshooting.md: each trouble is caused on real control planes, looks as the document shows, and clears.

All of them play at once, on one manager. ``MIRROR_E2E_WRITE_DOCUMENTS=1`` writes into the document what is seen.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext
from pathlib import Path

import pytest
import pytest_asyncio

from e2e import jobsets
from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE, JOB_CONTROLLERS, MANAGEMENT, Shape
from e2e.manager import Identity, ManagerProcess
from e2e.ports import reserved_port
from e2e.proxy import Proxy
from e2e.serving import serving_manager
from e2e.troubles import admission, document, further, kinds, lives, placing, pods, unreachable, wire
from e2e.troubles.kubelet import add_nodes
from e2e.troubles.looks import look_at, on_page, said_of
from e2e.troubles.stage import JOB, Play, Sight, Stage, Story, reason_of
from mirror.kube.resources import JOBS
from mirror.model import names

pytestmark = pytest.mark.timeout(1200)

NAMESPACE = "jobmirror-system"
EAST = Shape(
    controllers=f"{JOB_CONTROLLERS},resourcequota-controller,serviceaccount-controller",
    scheduler=True,
    kwok=True,
    service_accounts=True,
)
STORIES: tuple[Story, ...] = (
    *placing.STORIES, *admission.STORIES, *pods.STORIES, *lives.STORIES, *unreachable.STORIES,
    *wire.STORIES, *kinds.STORIES,
)  # fmt: skip
UNSHOWN: tuple[Story, ...] = further.STORIES
AT_ONCE = 6
RETRY_AFTER = "30s"
"""Concerns only Jobs that another worker may run, too."""
SEEN_SECONDS, CLEARED_SECONDS = 240.0, 400.0
"""What was refused several times is sent again after minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(binaries: None) -> AsyncIterator[Stage]:
    """A worker with everything, and three that are only reached, or not."""
    async with AsyncExitStack() as stack:
        shapes = {"management": MANAGEMENT, "east": EAST, "north": BARE, "south": BARE, "west": BARE}
        made = await asyncio.gather(
            *(stack.enter_async_context(Cluster.start(name, shape)) for name, shape in shapes.items())
        )
        planes = dict(zip(shapes, made, strict=True))
        hub = planes.pop("management")
        async with Client(planes["east"].kubeconfig) as client:
            await add_nodes(client)
        async with Client(hub.kubeconfig) as client:
            await jobsets.define(client)
        proxies = {name: await stack.enter_async_context(Proxy.before(planes[name])) for name in ("north", "south")}
        page = f"127.0.0.1:{stack.enter_context(reserved_port())}"
        settings: Json = {
            "workers": {"watchPods": "labelled", "lostAfter": "180s"},
            "placement": {"retryAfter": RETRY_AFTER},
            "dependencies": {"configMaps": True},
            "kinds": [jobsets.JOBSETS.kind],
            "page": {"enabled": True, "listen": page},
        }
        identity = Identity(NAMESPACE, names.DEFAULT_MANAGED_BY, "prod")
        reached = await wire.serve_all(stack)
        manager = await stack.enter_async_context(serving_manager(hub, {}, identity=identity, settings=settings))
        await register(manager, planes, proxies)
        await wire.register_all(manager, hub.directory, reached)
        yield Stage(hub, planes, proxies, manager, f"http://{page}/", await user(hub))


async def register(manager: ManagerProcess, planes: dict[str, Cluster], proxies: dict[str, Proxy]) -> None:
    """``east`` as it should be; others with what is needed for trouble with them."""
    await manager.register("east", planes["east"], labels={"region": "eu"})
    await manager.register("west", planes["west"], labels={"region": "us"}, annotations={"capacity": "1"})
    await manager.annotate_worker("west", {"namespaces": "on-west,tried-elsewhere,stays-after-all"})
    for name in ("north", "south"):
        path = planes[name].directory / "worker.kubeconfig"
        path.write_bytes(await manager.kubeconfig_of(planes[name]))
        await manager.register(name, kubeconfig=proxies[name].kubeconfig(path).read_bytes())
    await manager.register("broken", kubeconfig=b"kind: Config")
    nowhere = planes["north"].kubeconfig.read_bytes().replace(planes["north"].server.encode(), b"https://127.0.0.1:9")
    await manager.register("gone", kubeconfig=nowhere)


async def user(hub: Cluster) -> Path:
    """Somebody who may do what Kubernetes' role ``edit`` allows, with a token; and see JobSets."""
    path = await hub.service_account_kubeconfig("people", "ann")
    subject = {"kind": "ServiceAccount", "name": "ann", "namespace": "people"}
    binding: Json = {"metadata": {"name": "people"}, "subjects": [subject]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    kind = jobsets.JOBSETS
    seen: Json = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list", "watch"]}
    more = {"name": "jobsets-view", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}
    async with Client(hub.kubeconfig) as client:
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": more, "rules": [seen]})
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {**binding, "roleRef": role})
    return path


async def test_troubles_look_as_the_document_shows_and_clear(stage: Stage) -> None:
    """All at once; what differs is told of all of them."""
    turns = asyncio.Semaphore(AT_ONCE)
    stories = (*STORIES, *UNSHOWN)
    done = await asyncio.gather(*(play(stage, story, turns) for story in stories), return_exceptions=True)
    wrong = [
        f"{story.__name__}: {type(one).__name__}: {one}"
        for story, one in zip(stories, done, strict=True)
        if one is not None
    ]
    assert not wrong, "\n\n".join(wrong)


def test_every_section_has_its_trouble() -> None:
    """No section is without one that is caused, and no trouble without a section."""
    calls = (call for story in STORIES for call in ast.walk(ast.parse(inspect.getsource(story))))
    sights = (call for call in calls if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Sight")
    titles = [ast.literal_eval(sight.args[0]) for sight in sights]
    assert sorted(titles) == sorted(document.TROUBLES.titles())
    assert len(titles) >= 30
    assert all(map(document.TROUBLES.block, titles))


async def play(stage: Stage, story: Story, turns: asyncio.Semaphore) -> None:
    """One story from its cause to its end.

    Raises:
        AssertionError: the document shows something else.
        TimeoutError: the trouble was not told, or did not clear.
    """
    one = await Play.begin(stage, story, kinds.RESOURCES.get(story, JOBS))
    try:
        async with aclosing(story(one)) as sights:
            async for sight in sights:
                is_over = not (sight.title or sight.texts)
                await one.scene.source_until(JOB, sight.so, seconds=CLEARED_SECONDS if is_over else SEEN_SECONDS)
                if sight.title:
                    await compare(one, sight.title, nullcontext() if sight.passes else turns)
                elif sight.texts:
                    await hear(one, sight, turns)
    finally:
        await one.scene.close()


async def hear(one: Play, sight: Sight, turns: asyncio.Semaphore) -> None:
    """A trouble without a section: its event, and what the commands and the page say."""
    reason, *said = sight.texts
    event = await one.scene.event(JOB, reason)
    seen, shown, missing = "", "", [*sight.texts]
    for _ in range(document.LOOKS):
        async with turns:
            seen, shown = await said_of(one), await on_page(one)
        missing = [text for text in sight.texts if text not in seen] + [text for text in sight.why if text not in shown]
        if not missing:
            break
        await asyncio.sleep(document.AGAIN_SECONDS)
    assert not missing, f"{missing} in none of:\n{seen}\non the page:\n{shown}"
    assert event["type"] == "Warning"
    assert any(text in event["message"] for text in said), event["message"]


async def compare(one: Play, title: str, turns: AbstractAsyncContextManager[None]) -> None:
    """Look until it is as the document says."""
    source = await one.scene.source(JOB)
    if reason := reason_of(source):
        await one.scene.event(JOB, reason)  # events are sent beside the work

    async def look() -> str:
        async with turns:
            return await look_at(one)

    await document.TROUBLES.compare(title, look)
