"""What of a Job is carried to a worker, and what follows later (D4, D9)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from doubles.apiserver import ApiServer
from doubles.clock import FixedClock
from doubles.jobs import as_object, condition, job
from doubles.patching import apply_json_patch

from mirror.kinds.base import Changes, MirrorTransform
from mirror.kinds.batch_job.body import mirror_body
from mirror.kinds.batch_job.changes import changes
from mirror.kinds.batch_job.reading import is_final, is_suspended, managed_by, summary
from mirror.model import names

Json = dict[str, Any]

TRANSFORM = MirrorTransform("origin-1")
AT = "2026-03-01T12:00:00Z"
POD = ("spec", "template", "spec")


def stored_source(**changes: Any) -> Json:
    """A source as its API server stores it: with defaults, generated labels and a uid."""
    server = ApiServer("management", FixedClock(AT))
    body = job(labels={"app": "x"}, annotations={"team": "ml"}, parallelism=2, completions=4)
    body["spec"] |= changes
    return server.put("jobs", body)


def stored_mirror(source: Json, transform: MirrorTransform = TRANSFORM) -> Json:
    """Its mirror, as the worker's API server stores it."""
    body = mirror_body(as_object(source), namespace="default", transform=transform)
    return ApiServer("east", FixedClock(AT)).put("jobs", copy.deepcopy(body))


def made(source: Json, transform: MirrorTransform = TRANSFORM) -> Json:
    return mirror_body(as_object(source), namespace="run-default", transform=transform)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("spec", "managedBy"), names.DEFAULT_MANAGED_BY, id="managedBy"),
        pytest.param(("spec", "ttlSecondsAfterFinished"), 60, id="the TTL: it could erase a result too early"),
        pytest.param(("spec", "selector"), {"matchLabels": {"a": "b"}}, id="the generated selector"),
        pytest.param(("metadata", "uid"), "u", id="uid"),
        pytest.param(("metadata", "ownerReferences"), [{"kind": "X", "name": "x", "uid": "u"}], id="owners"),
        pytest.param(("metadata", "finalizers"), ["a/b"], id="finalizers"),
        pytest.param(("metadata", "managedFields"), [{}], id="managed fields"),
        pytest.param(("metadata", "resourceVersion"), "7", id="version"),
        pytest.param(("metadata", "generateName"), "x-", id="generateName"),
        pytest.param(("metadata", "creationTimestamp"), AT, id="creation"),
        pytest.param(("status",), {"active": 1}, id="status"),
        pytest.param(
            ("metadata", "annotations"),
            {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            id="what kubectl remembers",
        ),
        pytest.param(("metadata", "annotations"), {names.WORKER_SELECTOR: "a=b"}, id="our annotations"),
        pytest.param(("metadata", "labels"), {names.PREFIX + "x": "y"}, id="our labels"),
        pytest.param(("metadata", "labels"), {"job-name": "train"}, id="a generated label"),
        pytest.param(
            ("spec", "template", "metadata", "labels"),
            {"batch.kubernetes.io/controller-uid": "u"},
            id="a generated label of the template",
        ),
        pytest.param(("spec", "template", "metadata", "creationTimestamp"), None, id="the template's null creation"),
    ],
)
def test_what_is_stripped(path: tuple[str, ...], value: Any) -> None:
    """D4: none of it is found on the mirror."""
    source = stored_source()
    _put(source, path, value)
    found = _read(made(source), path)
    if isinstance(value, dict) and isinstance(found, dict):
        assert not value.keys() & found.keys()
    else:
        assert found is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("metadata", "labels"), {"app": "x"}, id="labels"),
        pytest.param(("metadata", "annotations"), {"team": "ml"}, id="annotations"),
        pytest.param(("spec", "futureField"), {"deep": [1, None]}, id="a field that we do not know"),
        pytest.param((*POD, "futureField"), True, id="one of pods"),
        pytest.param(("spec", "podFailurePolicy"), {"rules": [{"action": "Ignore"}]}, id="policies"),
        pytest.param(("spec", "template", "metadata", "labels"), {"mine": "1"}, id="the template's own labels"),
        pytest.param(("spec", "template", "metadata", "annotations"), {"mine": "1"}, id="and annotations"),
        pytest.param(("spec", "completionMode"), "Indexed", id="the completion mode"),
    ],
)
def test_what_passes_untouched(path: tuple[str, ...], value: Any) -> None:
    """D4: whatever is not stripped is carried as it is."""
    source = stored_source()
    _put(source, path, value)
    found = _read(made(source), path)
    assert found == value if not isinstance(value, dict) else value.items() <= found.items()


def _put(body: Any, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        body = body.setdefault(step, {})
    if isinstance(value, dict) and isinstance(body.get(path[-1]), dict):
        body[path[-1]].update(value)
    else:
        body[path[-1]] = value


def _read(body: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        body = body.get(step) if isinstance(body, dict) else None
    return body


def test_a_mirror_says_whose_it_is_and_where_it_lives() -> None:
    """D1: both labels, the source's name, the worker's namespace, and a note of what was carried."""
    body = made(stored_source() | {"metadata": stored_source()["metadata"] | {"uid": "u-1"}})
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("train", "run-default")
    assert body["metadata"]["labels"].items() >= {names.ORIGIN: "origin-1", names.SOURCE_UID: "u-1"}.items()
    assert names.CARRIED in body["metadata"]["annotations"]
    assert body["spec"]["suspend"] is False


def test_a_manual_selector_keeps_the_labels_that_it_asks_for() -> None:
    """D4: without them the worker would refuse the Job."""
    labels = {"job-name": "train"}
    template = {"metadata": {"labels": labels}, "spec": job()["spec"]["template"]["spec"]}
    source = stored_source(manualSelector=True, selector={"matchLabels": labels}, template=template)
    _put(source, ("spec", "template", "metadata", "labels"), {"job-name": "train", "controller-uid": "u"})
    body = made(source)
    assert body["spec"]["selector"] == {"matchLabels": {"job-name": "train"}}
    assert body["spec"]["template"]["metadata"]["labels"] == {"job-name": "train"}


def test_operators_may_strip_and_set_more() -> None:
    """Settings ``mirrors.strip`` and ``mirrors.set``; our own labels cannot be overwritten by them."""
    transform = MirrorTransform(
        "o", ("app*",), ("team",), (("via", "mirror"), (names.ORIGIN, "forged")), (("from", "management"),)
    )
    metadata = made(stored_source(), transform)["metadata"]
    assert "app" not in metadata["labels"]
    assert metadata["labels"]["via"] == "mirror"
    assert metadata["labels"][names.ORIGIN] == "o"
    assert (metadata["annotations"].get("team"), metadata["annotations"]["from"]) == (None, "management")


def applied(source: Json, mirror: Json, transform: MirrorTransform = TRANSFORM) -> tuple[Changes | None, Json]:
    """The changes, and the mirror after them."""
    found = changes(as_object(source), as_object(mirror), transform=transform)
    return found, apply_json_patch(mirror, found.operations) if found else mirror


def test_what_the_worker_adds_is_no_difference() -> None:
    """D9: defaults, generated labels and admission's additions are not compared."""
    source = stored_source()
    mirror = stored_mirror(source)
    mirror["metadata"]["annotations"]["admission.example.com/x"] = "1"
    mirror["metadata"]["labels"]["added"] = "1"
    mirror["spec"]["template"]["spec"]["tolerations"] = [{"key": "spot"}]
    mirror["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "batch"}
    mirror["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    assert applied(source, mirror)[0] is None


def changed_body(name: str) -> Callable[[Json], None]:
    """A user's change of one part."""
    edits: dict[str, tuple[tuple[str, ...], Any]] = {
        "parallelism": (("spec", "parallelism"), 9),
        "completions": (("spec", "completions"), 9),
        "suspend": (("spec", "suspend"), True),
        "backoffLimit": (("spec", "backoffLimit"), 1),
        "activeDeadlineSeconds": (("spec", "activeDeadlineSeconds"), 30),
        "maxFailedIndexes": (("spec", "maxFailedIndexes"), 3),
        "labels": (("metadata", "labels"), {"new": "1"}),
        "annotations": (("metadata", "annotations"), {"a/b~c": "1"}),
        "templateLabels": (("spec", "template", "metadata", "labels"), {"new": "1"}),
        "templateAnnotations": (("spec", "template", "metadata", "annotations"), {"new": "1"}),
        "nodeSelector": ((*POD, "nodeSelector"), {"disk": "ssd"}),
        "tolerations": ((*POD, "tolerations"), [{"key": "gpu"}]),
        "schedulingGates": ((*POD, "schedulingGates"), [{"name": "g"}]),
        "nodeAffinity": ((*POD, "affinity"), {"nodeAffinity": {"required": {"terms": []}}}),
    }
    path, value = edits[name]
    return lambda body: _put(body, path, value)


PARTS = (
    *("parallelism", "completions", "suspend", "backoffLimit", "activeDeadlineSeconds", "maxFailedIndexes"),
    *("labels", "annotations", "templateLabels", "templateAnnotations"),
    *("nodeSelector", "tolerations", "schedulingGates", "nodeAffinity"),
)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_that_may_change_follows(part: str) -> None:
    """D9: one patch; afterwards there is nothing more to do, on a suspended Job, which may change everything."""
    source = stored_source(suspend=part != "suspend")
    mirror = stored_mirror(source)
    changed_body(part)(source)
    found, patched = applied(source, mirror)
    assert found is not None
    assert not found.reverted
    probe = copy.deepcopy(mirror)
    changed_body(part)(probe)
    carried = {names.CARRIED: patched["metadata"]["annotations"][names.CARRIED]}
    probe["metadata"]["annotations"] |= carried
    assert patched == probe
    assert applied(source, patched)[0] is None


def test_resources_of_a_suspended_job_follow() -> None:
    """KEP-2926's sibling: each container has its own."""
    source = stored_source(suspend=True)
    mirror = stored_mirror(source)
    source["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    found, patched = applied(source, mirror)
    assert found is not None
    assert patched["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}


def test_a_removed_key_is_removed_and_additions_are_kept() -> None:
    """D9: what the worker's admission added to the same map stays."""
    source = stored_source()
    source["metadata"]["labels"]["old"] = "1"
    mirror = stored_mirror(source)
    mirror["metadata"]["labels"]["added"] = "1"
    del source["metadata"]["labels"]["old"]
    source["metadata"]["labels"]["new"] = "1"
    _, patched = applied(source, mirror)
    labels = patched["metadata"]["labels"]
    assert ("old" in labels, labels["added"], labels["new"], labels["app"]) == (False, "1", "1", "x")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"team": "x"}, {"team": "y"}, id="a label has another value"),
        pytest.param(None, {"team": "y"}, id="the first label"),
        pytest.param({"team": "x"}, None, id="the last label goes"),
    ],
)
@pytest.mark.parametrize("was_watching", [True, False])
def test_pods_stay_watched_when_the_labels_of_the_template_change(
    before: Json | None, after: Json | None, *, was_watching: bool
) -> None:
    """A patch writes the map whole, and ours are in it, also where the mirror was made without (D22)."""
    watching = msgspec.structs.replace(TRANSFORM, label_pods=True)
    source = stored_source(suspend=True)
    template = source["spec"]["template"]
    template["metadata"] = {"labels": before} if before else {}
    mirror = made(source, watching if was_watching else TRANSFORM)  # as sent: without labels that a server adds
    template["metadata"] = {"labels": after} if after else {}
    ours = watching.pod_labels(as_object(source))
    _, patched = applied(source, mirror, watching)
    assert patched["spec"]["template"]["metadata"]["labels"] == {**(after or {}), **ours}
    assert changes(as_object(source), as_object(patched), transform=watching) is None
    _, left = applied(source, mirror)
    assert (left["spec"]["template"]["metadata"].get("labels") or {}) == (after or {})


def test_a_removed_value_is_removed() -> None:
    """A deadline that the user takes away."""
    source = stored_source(activeDeadlineSeconds=60)
    mirror = stored_mirror(source)
    del source["spec"]["activeDeadlineSeconds"]
    _, patched = applied(source, mirror)
    assert "activeDeadlineSeconds" not in patched["spec"]


def test_what_is_changed_on_the_worker_is_sent_again_as_reverted() -> None:
    """D9: the note on the mirror tells it from a change by the user."""
    source = stored_source()
    mirror = stored_mirror(source)
    mirror["spec"]["parallelism"] = 1
    found, patched = applied(source, mirror)
    assert found is not None
    assert found.reverted == ("spec.parallelism",)
    assert patched["spec"]["parallelism"] == 2


def test_a_users_change_beside_one_on_the_worker_is_the_users() -> None:
    """Both are written; it is not counted as a fight."""
    source = stored_source()
    mirror = stored_mirror(source)
    mirror["spec"]["parallelism"] = 1
    source["spec"]["completions"] = 7
    found, patched = applied(source, mirror)
    assert found is not None
    assert not found.reverted
    assert (patched["spec"]["parallelism"], patched["spec"]["completions"]) == (2, 7)


def test_a_mirror_that_its_own_queue_suspends_is_left_to_it() -> None:
    """D9: spec.suspend set on the worker is not fought."""
    source = stored_source()
    mirror = stored_mirror(source)
    mirror["spec"]["suspend"] = True
    assert applied(source, mirror)[0] is None
    source["spec"]["parallelism"] = 9
    _, patched = applied(source, mirror)
    assert (patched["spec"]["parallelism"], patched["spec"]["suspend"]) == (9, True)


def test_resuming_carries_directives_and_unsuspends_in_one_write() -> None:
    """D3, KEP-2926."""
    source = stored_source(suspend=True)
    mirror = stored_mirror(source)
    source["spec"]["suspend"] = False
    changed_body("nodeSelector")(source)
    _, patched = applied(source, mirror)
    assert patched["spec"]["suspend"] is False
    assert patched["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}


@pytest.mark.parametrize(
    ("status", "may"),
    [
        pytest.param({}, True, id="it never ran"),
        pytest.param({"active": 1, "startTime": AT}, False, id="its pods are not gone"),
        pytest.param({"startTime": AT}, False, id="its suspension is not shown yet"),
        pytest.param({"startTime": AT, "conditions": [condition("Suspended", AT)]}, True, id="suspended, no pods"),
    ],
)
def test_a_template_waits_for_the_pods_to_go(status: Json, may: bool) -> None:
    """U4: a worker would refuse it; what else changed goes at once, but it is not resumed half changed."""
    source = stored_source(suspend=True)
    mirror = stored_mirror(source) | {"status": status}
    source["spec"]["suspend"] = False
    changed_body("nodeSelector")(source)
    changed_body("labels")(source)
    found, patched = applied(source, mirror)
    assert found is not None
    assert patched["metadata"]["labels"]["new"] == "1"
    assert ("nodeSelector" in patched["spec"]["template"]["spec"]) is may
    assert patched["spec"]["suspend"] is not may
    if not may:
        again, _ = applied(source, patched)
        assert again is not None
        assert (again.must_wait_for_pods, again.operations) == (True, ())


def test_a_note_that_somebody_destroyed_costs_one_write() -> None:
    """Without it, everything is written again once, and the note with it."""
    source = stored_source()
    mirror = stored_mirror(source)
    mirror["metadata"]["annotations"][names.CARRIED] = "no json"
    found, patched = applied(source, mirror)
    assert found is not None
    assert applied(source, patched)[0] is None


@pytest.mark.parametrize(
    ("body", "manager", "suspended"),
    [
        pytest.param({}, None, False, id="nothing said"),
        pytest.param({"managedBy": "a/b", "suspend": True}, "a/b", True, id="both"),
        pytest.param({"suspend": False, "x": {"managedBy": "not here"}}, None, False, id="the word somewhere else"),
        pytest.param({"managedBy": None, "suspend": None}, None, False, id="nulls"),
    ],
)
def test_a_spec_is_skimmed(body: Json, manager: str | None, suspended: bool) -> None:
    """Routes look at each event; they read no more than they need."""
    found = as_object({"metadata": {"name": "x"}, "spec": body})
    assert (managed_by(found), is_suspended(found)) == (manager, suspended)


@pytest.mark.parametrize(
    ("conditions", "placed", "finished"),
    [
        pytest.param([], None, False, id="nothing"),
        pytest.param([condition(names.PLACED, AT, message="east")], "east", False, id="placed"),
        pytest.param([condition(names.PLACED, AT, status="False", message="east")], None, False, id="no longer placed"),
        pytest.param([condition("Complete", AT)], None, True, id="complete"),
        pytest.param([condition("Failed", AT, status="False")], None, False, id="not failed"),
        pytest.param([condition("FailureTarget", AT)], None, False, id="not over yet"),
    ],
)
def test_a_status_is_skimmed(conditions: list[Json], placed: str | None, finished: bool) -> None:
    """Indexes are computed for each stored object."""
    found = as_object({"metadata": {"name": "x"}, "status": {"conditions": conditions}})
    assert (summary(found).placed, summary(found).is_finished) == (placed, finished)
    assert is_final({"conditions": conditions}) is finished


def test_an_object_without_a_status_is_skimmed_too() -> None:
    """What the API server has just stored."""
    found = as_object({"metadata": {"name": "x"}})
    assert (summary(found).placed, managed_by(found), is_suspended(found)) == (None, None, False)
    assert not is_final(None)
    assert msgspec.json.encode(made(stored_source()))
