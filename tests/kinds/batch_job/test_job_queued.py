"""A Job's mirror beside a queue on its cluster or on the worker: what is compared, sent and left (D9, D26)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from doubles.apiserver import ApiServer
from doubles.clock import FixedClock
from doubles.jobs import as_object, job
from doubles.patching import apply_json_patch

from mirror.kinds.base import Changes, MirrorTransform
from mirror.kinds.batch_job.body import mirror_body
from mirror.kinds.batch_job.changes import changes
from mirror.model import names

Json = dict[str, Any]

AT = "2026-03-01T12:00:00Z"
PLAIN = MirrorTransform("origin-1")
STRIPS = MirrorTransform("origin-1", strip_node_selectors=("flavor",), strip_tolerations=("flavor",))
FLAVOR = {"nodeSelector": {"flavor": "spot"}, "tolerations": [{"key": "flavor", "operator": "Exists"}]}


def stored_source(**changes: Any) -> Json:
    """As its API server has it."""
    body = job(parallelism=2, completions=4)
    body["spec"] |= changes
    return ApiServer("management", FixedClock(AT)).put("jobs", body)


def flavored(source: Json, flavor: Json | None = None) -> Json:
    """As the queue of its own cluster admits it."""
    admitted = copy.deepcopy(source)
    admitted["spec"]["suspend"] = False
    admitted["spec"]["template"]["spec"] |= FLAVOR if flavor is None else flavor
    admitted["spec"]["template"]["metadata"].setdefault("labels", {})[names.POD_SET] = "main"
    return admitted


def stored_mirror(source: Json, transform: MirrorTransform) -> Json:
    body = mirror_body(as_object(source), namespace="default", transform=transform)
    return ApiServer("east", FixedClock(AT)).put("jobs", copy.deepcopy(body))


def applied(source: Json, mirror: Json, transform: MirrorTransform) -> tuple[Changes | None, Json]:
    found = changes(as_object(source), as_object(mirror), transform=transform)
    return found, apply_json_patch(mirror, found.operations) if found else mirror


def directives(mirror: Json) -> Json:
    spec = mirror["spec"]["template"]["spec"]
    return {field: spec[field] for field in FLAVOR if field in spec}


def test_what_the_queue_here_adds_and_takes_away_changes_nothing_there() -> None:
    """Admitted with a flavor, preempted and restored, admitted with another: only suspend follows, and the note."""
    queued = stored_source(suspend=True)
    mirror = stored_mirror(flavored(queued), STRIPS)
    assert directives(mirror) == {}
    assert names.POD_SET not in (mirror["spec"]["template"]["metadata"].get("labels") or {})
    assert applied(flavored(queued), mirror, STRIPS)[0] is None
    suspended = flavored(queued) | {"spec": {**flavored(queued)["spec"], "suspend": True}}
    for source, is_suspended in ((suspended, True), (queued, True), (flavored(queued, {"nodeSelector": {}}), False)):
        mirror["status"] = {}
        _, mirror = applied(source, mirror, STRIPS)
        assert (mirror["spec"]["suspend"], directives(mirror)) == (is_suspended, {})
        assert applied(source, mirror, STRIPS)[0] is None


@pytest.mark.parametrize(("before", "after"), [(PLAIN, STRIPS), (STRIPS, PLAIN)])
def test_a_setting_suspends_no_running_mirror(before: MirrorTransform, after: MirrorTransform) -> None:
    """What a setting changes of an immutable template is no change of the user's: it waits, and is reported at most."""
    source = flavored(stored_source())
    mirror = stored_mirror(source, before) | {"status": {"active": 2, "startTime": AT}}
    found, _ = applied(source, mirror, after)
    assert found is None or not found.operations


def test_a_mirror_of_an_earlier_version_is_not_suspended_for_its_notes() -> None:
    """Before, the queue's notes were carried; the digest is of what the source has, so nothing has changed."""
    source = flavored(stored_source())
    mirror = stored_mirror(source, PLAIN) | {"status": {"active": 2, "startTime": AT}}
    mirror["spec"]["template"]["metadata"].setdefault("labels", {})[names.POD_SET] = "main"
    assert applied(source, mirror, PLAIN)[0] is None


def admitted_there(mirror: Json) -> Json:
    """As the worker's queue admits it, in part."""
    admitted = copy.deepcopy(mirror)
    admitted["spec"] |= {"suspend": False, "parallelism": 1}
    admitted["spec"]["template"]["spec"] |= FLAVOR
    admitted["spec"]["template"]["metadata"].setdefault("labels", {})[names.POD_SET] = "main"
    return admitted


def test_what_the_workers_queue_writes_is_not_put_back() -> None:
    """Fewer pods, its flavor's directives, its labels: no request."""
    source = stored_source()
    mirror = admitted_there(stored_mirror(source, PLAIN))
    assert applied(source, mirror, PLAIN)[0] is None


def test_a_change_of_the_users_follows_to_an_admitted_mirror() -> None:
    """What the queue makes of it is the queue's."""
    source = stored_source()
    mirror = admitted_there(stored_mirror(source, PLAIN))
    source["spec"]["parallelism"] = 3
    _, patched = applied(source, mirror, PLAIN)
    assert patched["spec"]["parallelism"] == 3


def test_a_suspension_is_sent_once_to_an_admitted_mirror() -> None:
    """The queue resumes what it has admitted; each further request would end the pods again."""
    source = stored_source()
    mirror = admitted_there(stored_mirror(source, PLAIN))
    source["spec"]["suspend"] = True
    found, patched = applied(source, mirror, PLAIN)
    assert found is not None
    assert patched["spec"]["suspend"] is True
    resumed = copy.deepcopy(patched)
    resumed["spec"]["suspend"] = False
    again, _ = applied(source, resumed, PLAIN)
    assert again is not None
    assert (again.operations, again.is_run_by_queue) == ((), True)


def test_without_a_queue_a_suspension_is_sent_again() -> None:
    """Somebody else has resumed it there."""
    source = stored_source(suspend=True)
    mirror = stored_mirror(source, PLAIN)
    mirror["spec"]["suspend"] = False
    found, patched = applied(source, mirror, PLAIN)
    assert found is not None
    assert (found.reverted, patched["spec"]["suspend"]) == (("spec.suspend",), True)
