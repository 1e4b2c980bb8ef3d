"""Pods and events of a worker, as users see them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.access.answers import StatusError, cleaned, refusal, whole
from mirror.access.pods import BadList, choose, read_events, read_list, read_pods
from mirror.kinds.pod_roles import PodRoles

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": True}


def pod(name: str = "a", phase: str = "Running", created: str = "2026-01-01T00:00:00Z", **metadata: Any) -> bytes:
    body = {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, "ownerReferences": [OWNER]}
        | metadata,
        "spec": {
            "containers": [{"name": "main", "image": "i"}, {"name": "side"}],
            "initContainers": [{"name": "init"}],
        },
        "status": {"phase": phase},
    }
    return msgspec.json.encode(body)


def test_a_role_that_comes_first_is_chosen_once_it_has_begun() -> None:
    """An MPIJob's launcher says most; before it has begun, the log of a worker is better than none."""
    roles = PodRoles("role", first=("launcher",))

    def of(name: str, phase: str, role: str) -> bytes:
        return pod(name, phase, labels={"role": role})

    ran = read_pods([of("l", "Succeeded", "launcher"), of("w", "Running", "worker")])
    waits = read_pods([of("l", "Pending", "launcher"), of("w", "Running", "worker")])
    assert [one.metadata.name for one in (choose(ran, roles), choose(ran), choose(waits, roles)) if one] == [
        "l",
        "w",
        "w",
    ]


def test_the_pod_that_is_meant_is_one_that_runs_and_the_newest() -> None:
    """Then one that ran, then one that will."""
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    raws = [pod("p", "Pending", new), pod("f", "Failed", new), pod("o", "Running", old), pod("n", "Running", new)]
    found = read_pods(raws)
    names = []
    while chosen := choose(found):
        names.append(chosen.metadata.name)
        found.remove(chosen)
    assert names == ["n", "o", "f", "p"]


def test_the_container_that_is_meant_is_the_first_or_the_one_that_is_noted() -> None:
    """As kubectl has it; an annotation that names none of its containers is ignored."""
    notes = [{}, {"annotations": {"kubectl.kubernetes.io/default-container": "side"}}]
    notes.append({"annotations": {"kubectl.kubernetes.io/default-container": "no/such"}})
    found = [one.default_container for one in read_pods([pod(**note) for note in notes])]
    assert found == ["main", "side", "main"]


def test_what_is_shown_has_the_apis_shape_and_only_known_fields() -> None:
    """Volumes, environment, other annotations stay away."""
    raw = msgspec.json.decode(pod(annotations={"secret": "x", "batch.kubernetes.io/job-completion-index": "3"}))
    raw["spec"] |= {"volumes": [{"name": "v"}], "nodeName": "n1"}
    raw["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    (found,) = read_pods([msgspec.json.encode(raw)], index="batch.kubernetes.io/job-completion-index")
    shown = found.shown()

    assert shown["metadata"]["annotations"] == {"batch.kubernetes.io/job-completion-index": "3"}
    assert shown["spec"] == {
        "nodeName": "n1",
        "containers": [{"name": "main", "image": "i"}, {"name": "side"}],
        "initContainers": [{"name": "init"}],
    }
    assert (shown["kind"], shown["status"]) == ("Pod", {"phase": "Running"})


@pytest.mark.slow
@given(JSON)
def test_whatever_a_worker_sends_is_read_or_left_out(junk: Any) -> None:
    """A list that is none is an error with a name; an item that is none is no item."""
    raw = msgspec.json.encode(junk)
    try:
        listed = read_list(raw, most=500)
    except BadList:
        listed = read_list(b'{"items":[%s]}' % raw, most=500)
    for one in (*read_pods(listed.items), *read_events(listed.items)):
        whole(one.shown())


@given(JSON)
def test_texts_of_answers_are_printable(value: Any) -> None:
    """Keys too; nothing can move a cursor or begin a line."""
    assert all(text.isprintable() for text in _texts(cleaned(value)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in _texts(one)]
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []


def test_a_refusal_is_a_status() -> None:
    """With what a client of Kubernetes looks at."""
    answer = refusal(StatusError(429, "slow\ndown", retry_after_seconds=3))
    status = msgspec.json.decode(answer.body)

    assert (answer.status, status["kind"], status["code"], status["reason"]) == (429, "Status", 429, "TooManyRequests")
    assert (status["message"], answer.headers) == ("slow\\ndown", (("Retry-After", "3"),))


def test_a_worker_cannot_make_much_of_little() -> None:
    """A few bytes a value: the list is refused, a pod is left out, and what is kept of one is bounded."""
    with pytest.raises(BadList):
        read_list(b'{"items":[' + b"1," * 1_500_000 + b"1]}", most=500)
    many = read_list(b'{"items":[' + b"{}," * 10_000 + b"{}]}", most=500)
    assert len(many.items) == 500
    assert not read_pods([b'{"spec":{"containers":[' + b"{}," * 1_100_000 + b"{}]}}"])
    texts = {f"k{n}": "v" for n in range(10_000)}
    crowd = {"name": "x", "uid": "u", "labels": texts, "annotations": texts, "ownerReferences": [OWNER] * 10_000}
    spec, status = {"containers": [{"name": "c"}] * 10_000}, {"conditions": [{"type": "T"}] * 10_000}
    (found,) = read_pods([msgspec.json.encode({"metadata": crowd, "spec": spec, "status": status})])
    assert len(msgspec.json.encode(found)) < 20_000
