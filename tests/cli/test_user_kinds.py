"""The commands for users where a second kind is mirrored beside Jobs, under the same names (D24)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from doubles.drills import DRILL, DRILLS, KINDS, POD_LABEL, Drill, definition, drill, run_drills
from test_user_commands import mirror, refused, rows, told
from user_fleet import NAMESPACE, UserFleet, has, user_fleet

from mirror.cli.user.naming import chosen, kind_named, named
from mirror.kinds import registry
from mirror.kinds.registry import JOB, Kinds
from mirror.kube.resources import Resource

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DR = DRILLS.path(NAMESPACE)
WITH_TABLE = (
    "from mirror.kinds import registry; from doubles.drills import KINDS; registry.BUILT_IN = KINDS; "
    "from mirror.cli.main import main; main()"
)


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """A manager whose table has Drills; a finished Job ``train``."""
    required_program("sleep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "BUILT_IN", KINDS)
        with user_fleet(tmp_path_factory.mktemp("fleet"), definition()) as found:
            found.create("train", "echo job", annotations={"jobmirror.io/worker-selector": "name=west"})
            found.wait("train", has("Complete"))
            yield found


@pytest.fixture(scope="module")
def both(planes: UserFleet) -> Iterator[UserFleet]:
    """Drills run everywhere: ``train``, which ran on east and has a pod there, and ``waits``."""
    running: list[asyncio.Task[None]] = []

    async def serve() -> None:
        workers = [worker.plane.api for worker in planes.fleet.workers.values()]
        running.extend(asyncio.ensure_future(run_drills(api, every_seconds=0.1)) for api in workers)
        for name, region in (("train", "name=east"), ("waits", "region=mars")):
            body = drill(name)
            body["metadata"]["annotations"] = {"jobmirror.io/worker-selector": region}
            await planes.fleet.management.plane.api.create(DR, body)
        await until(lambda found: any(one["type"] == "Succeeded" for one in conditions(found)))
        await make_pod()

    async def until(is_so: Callable[[Any], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so(await planes.fleet.management.plane.api.get(f"{DR}/train")):  # noqa: ASYNC110 - another's
                await asyncio.sleep(0.05)

    async def make_pod() -> None:
        api = planes.fleet.workers["east"].plane.api
        uid = (await api.get(f"{DR}/train"))["metadata"]["uid"]
        owner = {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "name": "train", "uid": uid, "controller": True}
        metadata = {"name": "drill-pod", "labels": {POD_LABEL: uid}, "ownerReferences": [owner]}
        container = {"name": "bit", "image": "x", "command": ["sh", "-c", "echo bore"]}
        await api.create(PODS, {"metadata": metadata, "spec": {"containers": [container], "restartPolicy": "Never"}})
        async with asyncio.timeout(60):
            while (await api.get(f"{PODS}/drill-pod"))["status"].get("phase") != "Succeeded":  # noqa: ASYNC110 - another's
                await asyncio.sleep(0.05)

    async def stop() -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    planes.do(serve)
    yield planes
    planes.do(stop)


def conditions(found: Any) -> list[dict[str, str]]:
    return found.get("status", {}).get("conditions") or []


# -- what is meant -----------------------------------------------------------------------------------------------------


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUILT_IN", KINDS)


@pytest.mark.parametrize(
    "text", ["drill", "Drill", "DRILLS", "dr", "drills.example.com", "drill.example.com", "drills.v1.example.com"]
)
def test_a_kind_is_named_as_for_kubectl(table: None, text: str) -> None:
    """Kind, plural, singular or a short name, in any case, perhaps with group and version."""
    assert named(f"{text}/train").kind is DRILL
    assert named(f"{text}/train").name == "train"


@pytest.mark.parametrize("text", ["job", "jobs", "Job", "jobs.batch", "jobs.v1.batch"])
def test_jobs_have_such_names_too(table: None, text: str) -> None:
    """And a name alone is a Job's."""
    assert named(f"{text}/train") == named("train")
    assert kind_named(text) is JOB


@pytest.mark.parametrize("text", ["pods", "drills.batch", "drills.v2.example.com", ""])
def test_a_kind_that_is_unknown_is_told_with_those_that_are_not(table: None, text: str) -> None:
    """The list is the table."""
    with pytest.raises(click.UsageError, match=r"unknown kind .*; known: jobs\.batch, drills\.example\.com"):
        named(f"{text}/train")


@pytest.mark.parametrize("text", ["drill/", "drill/a/b"])
def test_a_name_is_asked_for(table: None, text: str) -> None:
    """One name, after one kind."""
    with pytest.raises(click.UsageError, match="NAME or KIND/NAME"):
        named(text)


def test_names_of_one_kind_need_not_repeat_it(table: None) -> None:
    """With several it has to be clear which is meant."""
    assert chosen(["a", "b"], ["drill"]).names == (named("drill/a"), named("drill/b"))
    assert chosen([], []).kinds == (JOB, DRILL)
    assert chosen(["a", "drill/b"], []).kinds == (JOB, DRILL)
    with pytest.raises(click.UsageError, match="several kinds"):
        chosen(["a"], ["drill", "job"])


# -- a kind that no cluster serves -------------------------------------------------------------------------------------


class Ghost(Drill):
    """A kind whose CRD nobody has created."""

    resource = Resource("example.com", "v1", "ghosts", "Ghost")
    name = "Ghost"
    short_names = ()


def test_a_kind_that_is_not_served_is_not_there(planes: UserFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """``get`` is as if there were no such kind, unless somebody asks for it."""
    monkeypatch.setattr(registry, "BUILT_IN", Kinds.of(JOB))
    without = told(planes, "get", "-o", "json")
    monkeypatch.setattr(registry, "BUILT_IN", Kinds.of(JOB, Ghost()))
    assert told(planes, "get", "-o", "json") == without
    assert list(rows(told(planes, "get"))) == ["train"]
    assert told(planes, "get", "-o", "json", user="admin") == without  # who may list anything is answered 404, not 403
    for user in ("ann", "admin"):
        for arguments in (["get", "-k", "ghost"], ["get", "ghost/train"]):
            said = refused(planes, *arguments, user=user)
            assert "the management cluster does not serve ghosts.example.com" in said
    said = refused(planes, "explain", "ghost/train", user="admin")
    assert "the management cluster does not serve ghosts.example.com" in said


def test_an_unknown_kind_is_wrong_usage(planes: UserFleet) -> None:
    """The text lists the known ones."""
    for arguments in (["get", "-k", "pod"], ["logs", "pod/train"]):
        assert "unknown kind 'pod'; known: jobs.batch, drills.example.com" in refused(planes, *arguments, code=2)


# -- both kinds --------------------------------------------------------------------------------------------------------


def test_get_lists_all_kinds(both: UserFleet) -> None:
    """Names are as in ``kubectl get all``; of one kind alone they are plain."""
    shown = rows(told(both, "get"))
    assert list(shown) == ["job.batch/train", "drill.example.com/train", "drill.example.com/waits"]
    assert (shown["job.batch/train"][1], shown["drill.example.com/train"][1]) == ("west", "east")
    assert list(rows(told(both, "get", "-k", "dr"))) == ["train", "waits"]
    assert list(rows(told(both, "get", "-k", "job"))) == ["train"]
    names = told(both, "get", "-o", "name").split()
    assert names == ["job.batch/train", "drill.example.com/train", "drill.example.com/waits"]


def test_get_of_names_tells_the_kind_that_is_meant(both: UserFleet) -> None:
    """What is missing is named by its resource."""
    assert list(rows(told(both, "get", "train"))) == ["train"]
    assert rows(told(both, "get", "Drill/train"))["train"][1] == "east"
    assert list(rows(told(both, "get", "train", "drill/train"))) == ["job.batch/train", "drill.example.com/train"]
    result = mirror(both, "get", "waits", "drill/train", "drill/nothing")
    assert result.exit_code == 1
    missing = f"jobs.batch waits not found in namespace {NAMESPACE}; drills.example.com nothing not found in namespace"
    assert f"Error: {missing} {NAMESPACE}\n" == result.stderr


def test_get_shows_what_may_be_listed_and_says_what_may_not(both: UserFleet) -> None:
    """bob may read Jobs alone: that is no failure, unless he asks for Drills."""
    result = mirror(both, "get", user="bob")
    missing = "missing permission: list drills.example.com in namespace team-a"

    assert (result.exit_code, list(rows(result.stdout))) == (0, ["train"])
    assert result.stderr.startswith(missing)
    assert missing in refused(both, "get", "-k", "drill", user="bob")
    assert list(rows(told(both, "get", "-k", "job", user="bob"))) == ["train"]


def test_get_watches_all_kinds(both: UserFleet) -> None:
    """All of them first, each change as it comes."""
    environment = {**os.environ, "KUBECONFIG": both.kubeconfig("ann"), "PYTHONPATH": os.pathsep.join(sys.path)}
    listens = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", listens + WITH_TABLE, "get", "-w", "-o", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            first = {(one["kind"], one["name"]) for one in (json.loads(running.stdout.readline()) for _ in range(3))}
            assert first == {("Job", "train"), ("Drill", "train"), ("Drill", "waits")}
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=120)
            assert (running.returncode, errors) == (130, "")
        finally:
            running.kill()


def test_explain_tells_the_story_of_the_kind_that_is_meant(both: UserFleet) -> None:
    """Two objects of one name have two stories."""
    drill_story, job_story = told(both, "explain", "drill/train"), told(both, "explain", "train")

    for story, expected in ((drill_story, "Drill Succeeded east"), (job_story, "Job Complete west")):
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in story.splitlines())}
        assert " ".join(fields[name] for name in ("Kind", "State", "Worker")) == expected
    assert "Finished" in drill_story
    [found] = json.loads(told(both, "explain", "drill/waits", "-o", "json"))["items"]
    assert (found["job"]["kind"], found["job"]["state"]) == ("Drill", "Waiting")
    assert set(found["obstacles"]) - {""} == {"east", "west"}


WAYS = {"the manager": (), "the worker": ("--worker-context", "east")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_pods_and_logs_are_those_of_the_kind_that_is_meant(both: UserFleet, way: tuple[str, ...]) -> None:
    """By the manager, and with the user's own permissions on the worker."""
    assert list(rows(told(both, "pods", "drill/train", *way))) == ["drill-pod"]
    assert told(both, "logs", "dr/train", *way) == "bore\n"
    refused(both, "logs", "drill/waits", *way)
    assert told(both, "logs", "train") == "job\n"


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_diff_compares_the_kind_that_is_meant(both: UserFleet, way: tuple[str, ...]) -> None:
    """Each by its own rules."""
    [found] = json.loads(told(both, "diff", "drill/train", *way, "-o", "json"))["items"]

    assert [one["path"] for one in found["report"]["differences"]] == ["spec.run.managedBy"]


def test_diff_reads_every_kind_of_a_manifest(both: UserFleet, tmp_path: Path) -> None:
    """In its order; each heading names the kind."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "next"}, "spec": {"template": template}}
    file = tmp_path / "both.json"
    file.write_text(json.dumps({"kind": "List", "items": [drill("next"), job]}))
    text = told(both, "diff", "-f", str(file))

    headings = [line for line in text.splitlines() if line.endswith("before it is created:")]
    assert headings == ["Drill next, before it is created:", "Job next, before it is created:"]
    (tmp_path / "none.json").write_text("{}")
    assert "contains no Job or Drill" in refused(both, "diff", "-f", str(tmp_path / "none.json"))


def test_a_name_of_another_kind_is_not_taken(both: UserFleet) -> None:
    """There is a Drill ``waits``, and no Job."""
    assert "jobs.batch waits not found" in refused(both, "explain", "waits")


def test_shells_are_offered_kinds_and_their_objects(both: UserFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs by name, other kinds by ``KIND/``."""

    def offered(begun: str) -> list[str]:
        environment = {
            "KUBECONFIG": both.kubeconfig("ann"),
            "_MIRROR_COMPLETE": "bash_complete",
            "COMP_WORDS": f"mirror explain {begun}",
            "COMP_CWORD": "2",
        }
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.argv = ['mirror']; {WITH_TABLE}"],
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        return [line.partition(",")[2] for line in done.stdout.split()]

    assert offered("") == ["train", "drill/"]
    assert offered("dr/w") == ["dr/waits"]
