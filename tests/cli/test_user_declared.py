"""The commands for users where the manager's settings declare a kind: they know it by what the manager publishes."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from doubles.drills import DRILLS, POD_LABEL, definition, drill, run_drills
from test_user_commands import refused, rows, told
from user_fleet import NAMESPACE, UserFleet, has, user_fleet

from mirror.cli.user import naming
from mirror.cli.user.naming import all_named, chosen, named, one_named
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import Kinds
from mirror.settings.kinds import KindEntry
from mirror.settings.load import parse

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

DR = DRILLS.path(NAMESPACE)
ROLE = "example.com/role"
JOBS_THERE = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
MARS = {"jobmirror.io/worker-selector": "region=mars"}
ENTRIES = f"""
kinds:
- kind: Drill
  resource: drills.v1.example.com
  shortNames: [dr]
  managedBy: {{path: spec.run.managedBy}}
  suspend: {{path: spec.run.paused}}
  done: {{succeeded: [condition Succeeded=True], failed: [condition Broken=True]}}
  lost: {{conditions: [{{type: Broken}}]}}
  counts: {{active: [rounds]}}
  pods: {{{POD_LABEL}: "{{uid}}"}}
  podIndex: batch.kubernetes.io/job-completion-index
  podOwners: [Job jobs.v1.batch]
  podRole: {{label: {ROLE}, first: [lead]}}
"""


def declared(text: str = ENTRIES) -> tuple[KindEntry, ...]:
    return parse(text.encode(), "mirror.yaml").kinds


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """A manager that mirrors Drills by its settings; a Job and a Drill ``train``, which end, and ``waits``."""
    required_program("sleep")
    with user_fleet(tmp_path_factory.mktemp("fleet"), definition(), kinds=declared()) as found:
        found.create("train", "echo job", annotations={"jobmirror.io/worker-selector": "name=west"})
        running: list[asyncio.Task[None]] = []

        async def serve() -> None:
            workers = [worker.plane.api for worker in found.fleet.workers.values()]
            running.extend(asyncio.ensure_future(run_drills(api, every_seconds=0.1)) for api in workers)
            for name, where in (("train", {"jobmirror.io/worker-selector": "name=east"}), ("waits", MARS)):
                body = drill(name)
                body["metadata"]["annotations"] = where
                await found.fleet.management.plane.api.create(DR, body)

        async def settle() -> None:
            api = found.fleet.management.plane.api
            async with asyncio.timeout(120):
                while not has("Succeeded")(await api.get(f"{DR}/train")):  # noqa: ASYNC110 - another's
                    await asyncio.sleep(0.05)
                while "jobmirror.io/waiting-because" not in (await api.get(f"{DR}/waits"))["metadata"]["annotations"]:  # noqa: ASYNC110 - another's
                    await asyncio.sleep(0.05)

        async def stop() -> None:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

        found.do(serve)
        found.wait("train", has("Complete"))
        asyncio.run_coroutine_threadsafe(settle(), found.loop).result(150)
        asyncio.run_coroutine_threadsafe(make_pods(found), found.loop).result(150)
        yield found
        found.do(stop)


async def make_pods(found: UserFleet) -> None:
    """As the controller of Drills would: a Job for each role. A stranger's Job has the same labels."""
    api = found.fleet.workers["east"].plane.api
    uid = (await api.get(f"{DR}/train"))["metadata"]["uid"]
    owner = {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "name": "train", "uid": uid, "controller": True}
    for role, count, owners in (("lead", 1, [owner]), ("hand", 2, [owner]), ("stranger", 1, [])):
        container = {"name": "bit", "image": "x", "command": ["sh", "-c", f"echo {role}"]}
        template = {
            "metadata": {"labels": {POD_LABEL: uid, ROLE: role}},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        spec = {"completionMode": "Indexed", "completions": count, "parallelism": count, "template": template}
        await api.create(JOBS_THERE, {"metadata": {"name": role, "ownerReferences": owners}, "spec": spec})
    async with asyncio.timeout(120):
        for role in ("lead", "hand", "stranger"):
            while not has("Complete")(await api.get(f"{JOBS_THERE}/{role}")):  # noqa: ASYNC110 - another's
                await asyncio.sleep(0.05)


# -- what is meant -----------------------------------------------------------------------------------------------------


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Kinds:
    """Drills, and two kinds that have one short name."""
    ends = "done: {succeeded: [a=b], failed: [a=c]}, lost: {set: {a: c}}"
    same = f"{{kind: %s, resource: %s.v1.example.com, shortNames: [ab], {ends}}}"
    entries = declared(f"{ENTRIES}\n- {same % ('Abacus', 'abacuses')}\n- {same % ('Abbey', 'abbeys')}\n")
    found = kinds_of(entries)
    monkeypatch.setattr(naming, "kinds", lambda: found)
    return found


@pytest.mark.parametrize(
    "words", [("drill/train",), ("drill", "train"), ("DR", "train"), ("drills.example.com", "train")]
)
def test_kind_and_name_are_one_word_or_two(known: Kinds, words: tuple[str, ...]) -> None:
    """As for kubectl."""
    found = one_named(words)
    assert (found.kind, found.name) == (known["Drill"], "train")


def test_a_first_word_that_is_a_kind_is_one_where_names_follow(known: Kinds) -> None:
    """A Job of that name alone is still a Job."""
    assert all_named(["drill", "a", "b", "a"]) == [named("drill/a"), named("drill/b")]
    assert all_named(["a", "b"]) == [named("a"), named("b")]
    assert all_named(["drill"]) == [named("job/drill")]
    assert all_named(["job/drill", "drill/a"]) == [named("job/drill"), named("drill/a")]
    assert chosen(["drill"], []).kinds == (known["Drill"],)
    assert chosen(["drill", "a"], []).names == (named("drill/a"),)
    assert chosen(["job", "a"], []).names == (named("a"),)


WRONG = {
    "an ambiguous short name": (
        ("ab/train",),
        "'ab' is a short name of abacuses.example.com, abbeys.example.com; write",
    ),
    "the same, as a word": (("ab", "train"), "'ab' is a short name of abacuses.example.com, abbeys.example.com; write"),
    "a kind that is not configured": (("jobset/train",), "its operator adds jobset to the setting kinds"),
    "an unknown kind": (("dril/train",), "unknown kind 'dril'; known: jobs.batch, .*Did you mean 'drill'?"),
    "an unknown first word": (("nothing", "train"), "unknown kind 'nothing'"),
    "three words": (("drill", "a", "b"), "write NAME, KIND/NAME or KIND NAME"),
    "a kind twice": (("drill", "drill/a"), "write NAME, KIND/NAME or KIND NAME"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(known: Kinds, words: tuple[str, ...], said: str) -> None:
    """With what there is instead."""
    with pytest.raises(click.UsageError, match=said):
        one_named(words)


# -- on clusters -------------------------------------------------------------------------------------------------------


def test_get_lists_what_the_manager_publishes(planes: UserFleet) -> None:
    """No permission is needed but those on the objects."""
    shown = rows(told(planes, "get"))
    assert list(shown) == ["job.batch/train", "drill.example.com/train", "drill.example.com/waits"]
    assert shown["drill.example.com/train"][1:3] == ["east", "Complete"]
    assert list(rows(told(planes, "get", "drills"))) == ["train", "waits"]
    assert list(rows(told(planes, "get", "dr", "waits"))) == ["waits"]
    assert "drill.example.com/train" in told(planes, "get", "-A", "-o", "name", user="admin").split()


def test_explain_tells_its_story(planes: UserFleet) -> None:
    """From its conditions, its events, and what the manager knows."""
    [found] = json.loads(told(planes, "explain", "drill", "train", "-o", "json"))["items"]
    kinds = [moment["kind"] for moment in found["timeline"]]
    assert (found["job"]["kind"], found["job"]["state"], found["job"]["worker"]) == ("Drill", "Complete", "east")
    assert (kinds[0], kinds[-1], "Placed" in kinds) == ("Created", "Finished", True)
    [waits] = json.loads(told(planes, "explain", "drill/waits", "-o", "json"))["items"]
    assert (waits["job"]["state"], set(waits["obstacles"]) - {""}) == ("Waiting", {"east", "west"})
    assert "Pods:" not in told(planes, "explain", "drill/waits")


@pytest.mark.parametrize("way", [(), ("--worker-context", "east")], ids=["the manager", "the worker"])
def test_diff_compares_it(planes: UserFleet, way: tuple[str, ...]) -> None:
    """By its own paths."""
    [found] = json.loads(told(planes, "diff", "drill", "train", *way, "-o", "json"))["items"]
    assert "spec.run.managedBy" in [one["path"] for one in found["report"]["differences"]]


def test_diff_and_place_read_it_from_a_manifest(planes: UserFleet, tmp_path: Path) -> None:
    """Before it is created."""
    file = tmp_path / "drill.json"
    file.write_text(json.dumps(drill("next")))
    assert told(planes, "diff", "-f", str(file)).startswith("Drill next, before it is created:")
    [found] = json.loads(told(planes, "place", "--dry-run", "-f", str(file), "-o", "json"))["items"]
    assert (found["kind"], found["choice"]["worker"] in ("east", "west")) == ("Drill", True)


def test_a_kind_that_this_manager_does_not_mirror_is_told_so(planes: UserFleet) -> None:
    """Wrong usage, and nothing is asked of any worker."""
    for arguments in (["explain", "jobset/train"], ["pods", "jobset", "train"], ["get", "-k", "jobset"]):
        said = refused(planes, *arguments, code=2)
        assert "unknown kind 'jobset'; known: jobs.batch, drills.example.com." in said
        assert "its operator adds jobset to the setting kinds" in said


def test_where_nothing_is_published_what_is_built_in_is_guessed(planes: UserFleet, monkeypatch: Any) -> None:
    """As far as the cluster serves it: here that is none of it, and Jobs are listed."""
    monkeypatch.setenv("MIRROR_MANAGER_NAMESPACE", "nowhere")
    assert list(rows(told(planes, "get"))) == ["train"]
    assert "unknown kind 'drill'" in refused(planes, "explain", "drill/train", code=2)


# -- inside the mirror -------------------------------------------------------------------------------------------------

WAYS = {"the manager": (), "the worker": ("--worker-context", "east")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_pods_are_those_of_the_jobs_that_the_mirror_controls(planes: UserFleet, way: tuple[str, ...]) -> None:
    """With their roles, the first one first; a stranger's, which has the same labels, is not among them."""
    found = json.loads(told(planes, "pods", "drill", "train", *way, "-o", "json"))["items"]
    assert [(one["role"], one["index"]) for one in found] == [("lead", "0"), ("hand", "0"), ("hand", "1")]
    lines = told(planes, "pods", "drill/train", *way).splitlines()
    assert lines[0].split()[:3] == ["NAME", "ROLE", "INDEX"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_logs_are_chosen_by_role_and_index(planes: UserFleet, way: tuple[str, ...]) -> None:
    """The first role's where nothing is said."""
    assert told(planes, "logs", "drill/train", *way) == "lead\n"
    assert told(planes, "logs", "drill", "train", "--role", "hand", "--index", "1", *way) == "hand\n"
    assert told(planes, "logs", "drill/train", "--role", "hand", "--all-pods", "--no-prefix", *way) == "hand\n" * 2
    said = refused(planes, "logs", "drill/train", "--role", "stranger", *way)
    assert "no pod of role stranger; its roles: lead, hand" in said
    assert "the pods of this kind have none" in refused(planes, "logs", "train", "--role", "lead")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_strangers_pod_is_not_the_mirrors(planes: UserFleet, way: tuple[str, ...]) -> None:
    """By its name neither, nor its events."""
    names = told(planes, "pods", "drill/train", *way, "-o", "name")
    assert "stranger" not in names
    assert "no pod" in refused(planes, "logs", "drill/train", "--pod", "stranger-0", *way)
    about = {one["about"] for one in json.loads(told(planes, "events", "drill", "train", *way, "-o", "json"))["items"]}
    assert {one.split("/")[0] for one in about} >= {"job", "pod"}  # its Jobs', too
    assert not any("stranger" in one for one in about)


def test_the_manager_chooses_for_who_may_not_list_pods(planes: UserFleet) -> None:
    """By role, too; and it looks whose the pod is."""
    base = f"/v1/namespaces/{NAMESPACE}/drills.example.com/train/log"
    assert asked_as(planes, "ann", f"{base}?role=hand&index=1") == (200, "hand\n")
    assert asked_as(planes, "ann", base) == (200, "lead\n")
    assert asked_as(planes, "ann", f"{base}?role=stranger")[0] == 404
    assert asked_as(planes, "bob", base)[0] == 403
    stranger = planes.do(lambda: _strangers_pod(planes))
    assert asked_as(planes, "ann", f"{base}?pod={stranger}")[0] == 404


async def _strangers_pod(planes: UserFleet) -> str:
    found = await planes.fleet.workers["east"].plane.api.list(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return str(next(one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("stranger")))


def asked_as(planes: UserFleet, user: str, path: str) -> tuple[int, str]:
    """What the manager answers a user who asks by HTTPS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer token-of-{user}"}
    request = urllib.request.Request(f"{planes.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
