"""What is inside a mirror, drawn: whatever a worker sends is text, bounded, and never breaks the page."""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import JOB, Kinds
from mirror.model.keys import SourceKey
from mirror.page import inside, tabs
from mirror.page.markup import join
from mirror.page.times import offset
from mirror.page.visiting import Bodies
from tests.doubles.drills import DRILL
from tests.doubles.page_visitors import BODIES, EVENTS, PODS
from tests.doubles.pretended import NOW

KINDS = Kinds.of(JOB, DRILL, DeclaredKind(built_in()["TaskRun"]))
HOSTILE = '"><img src=x onerror=alert(1)>\u202e'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["items", "metadata", "spec", "status", "containers", "containerStatuses", "state", "waiting",
                         "reason", "message", "name", "phase", "involvedObject", "count", "restartCount"]),
        inner, max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.just("items"), st.lists(JSON, max_size=4)) | st.dictionaries(st.text(max_size=3), JSON))
def test_any_answer_is_drawn(found: dict[str, Any]) -> None:
    """Types that are wrong count as absent; nothing becomes an element."""
    for draw in (inside.pods, inside.events):
        drawn = draw(found, NOW)
        assert "<img" not in drawn
        assert "\u202e" not in drawn
    assert "<img" not in inside.manifests(Bodies(source=found, mirror={"a": found}, worker=HOSTILE, because=HOSTILE))


def test_pods_say_why_they_do_not_run() -> None:
    """And each container leads to its log."""
    drawn = inside.pods(PODS, NOW)
    assert "ImagePullBackOff: container train: image train:7: not found" in drawn
    assert ">1/2<" in drawn
    assert drawn.count("data-container") == 3
    assert 'data-pod="train-resnet-large-1-q9d4m" data-container="train"' in drawn
    assert "no pods" in inside.pods({"items": []}, NOW)


def test_an_init_container_that_fails_says_why_and_has_its_log() -> None:
    """The others only wait for it, and count for readiness."""
    waits = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    fails = {
        "name": "fetch",
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 7}},
    }
    spec = {"initContainers": [{"name": "fetch"}], "containers": [{"name": "main"}]}
    status = {"phase": "Pending", "initContainerStatuses": [fails], "containerStatuses": [waits]}

    drawn = inside.pods({"items": [{"metadata": {"name": "p"}, "spec": spec, "status": status}]}, NOW)

    assert "CrashLoopBackOff: container fetch: exit code 7" in drawn
    assert "PodInitializing" not in drawn
    assert drawn.index('data-container="fetch"') < drawn.index('data-container="main"')
    assert ">0/1<" in drawn
    assert ">4<" in drawn


def test_a_pod_that_no_node_takes_says_why() -> None:
    """By its condition; it has no containers yet."""
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}

    drawn = inside.pods({"items": [{"status": {"phase": "Pending", "conditions": [unscheduled]}}]}, NOW)

    assert "Unschedulable: 0/3 nodes" in drawn


def test_events_are_newest_first() -> None:
    """With how often."""
    drawn = inside.events(EVENTS, NOW)
    assert drawn.index("BackOff") < drawn.index("SuccessfulCreate")
    assert "×12" in drawn
    assert "no events" in inside.events({}, NOW)


def test_manifests_stand_side_by_side_with_what_differs_marked() -> None:
    """Equal lines are plain, others on their side."""
    drawn = inside.manifests(BODIES)
    assert "Mirror on gpu-frankfurt" in drawn
    assert (
        '<td role="cell" class="minus">  parallelism: 8</td><td role="cell" class="plus">  parallelism: 4</td>' in drawn
    )
    assert '<td role="cell" class="minus">  managedBy: jobmirror.io/controller</td>' in drawn
    assert '<td role="cell">  completions: 64</td><td role="cell">  completions: 64</td>' in drawn
    alone = inside.manifests(Bodies(source=BODIES.source, because="no worker yet"))
    assert "no worker yet" in alone
    assert 'class="minus"' not in alone
    long = inside.manifests(Bodies(source={"spec": {str(number): 1 for number in range(5_000)}}))
    assert "too long" in long


def test_manifests_that_are_hard_to_compare_or_deep_are_no_trouble() -> None:
    """D29: a worker may send any. Lines that are everywhere cost the square of their number, and more."""
    source, mirror = ({"spec": {"a": [one for at in range(365) for one in ("x", f"{of}{at}")]}} for of in "sm")
    began = process_time()
    drawn = inside.manifests(Bodies(source=source, mirror=mirror, worker="east"))
    assert process_time() - began < 1.0
    assert drawn.count('class="minus"') >= 365
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    assert "too deeply" in inside.manifests(Bodies(source={"spec": deep}))


@pytest.mark.parametrize(
    ("first", "at", "text"),
    [
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00.350Z", "+350 ms"),
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:02.134Z", "+2.134 s"),
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:02Z", "+2 s"),
        ("2026-11-21T12:00:00Z", "2026-11-21T12:42:00Z", "+42m"),
        ("2026-11-21T12:00:00.500Z", "2026-11-21T12:00:00Z", "+0 ms"),
        ("", "2026-11-21T12:00:00Z", ""),
        ("x", "y", ""),
    ],
)
def test_offsets_are_as_fine_as_is_known(first: str, at: str, text: str) -> None:
    """To the millisecond where a time has them."""
    assert offset(first, at) == text


def test_commands_can_be_pasted_whatever_a_name_is() -> None:
    """Names are quoted for a shell; another kind is named."""
    lines = [line for line, _ in tabs.commands(SourceKey("Job", "a", "train"), KINDS)]
    assert lines[0] == "mirror explain train -n a"
    assert lines[-1] == "kubectl describe jobs.batch train -n a"
    drill = tabs.commands(SourceKey("Drill", "a", "x; rm -rf"), KINDS)
    assert next(iter(drill))[0] == "mirror explain 'drill/x; rm -rf' -n a"


def test_commands_name_a_kind_of_the_settings_by_its_resource() -> None:
    """Which the table of kinds in use has; its name in small letters may be another group's, too (D24)."""
    lines = [line for line, _ in tabs.commands(SourceKey("TaskRun", "a", "train"), KINDS)]
    assert lines[0] == "mirror explain taskrun/train -n a"
    assert lines[-1] == "kubectl describe taskruns.tekton.dev train -n a"


def test_commands_name_the_group_where_the_name_alone_means_another_kind() -> None:
    """Here the plural of one kind is the name of another one after it."""
    jobs = DeclaredKind(replace(built_in()["TaskRun"], kind="Jobs", resource="many.v1.example.com"))
    lines = [line for line, _ in tabs.commands(SourceKey("Jobs", "a", "train"), Kinds.of(JOB, jobs))]
    assert lines[0] == "mirror explain many.example.com/train -n a"


def test_tabs_without_scripts_name_the_kind_that_is_used() -> None:
    """What the page cannot show itself is shown by a command, which is told as those to copy are."""
    parts = {"timeline": join(), "no-events": join(), "elsewhere": join()}
    key = SourceKey("TaskRun", "a", "train")
    drawn = str(join(*tabs.panels(parts, key, KINDS, has_inside=False)))
    assert "mirror pods taskrun/train -n a" in drawn
    assert "kubectl describe taskruns.tekton.dev train -n a" in drawn
