"""What is of the management cluster's queue and nodes stays there; what its user asks for goes along (D26)."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.kinds.base import MirrorTransform
from mirror.kinds.queueing import NOTES, is_admitted, template_for_worker
from mirror.model import names

KUEUE = "kueue.x-k8s.io/"
PLAIN = MirrorTransform("here")
STRIPS = MirrorTransform("here", strip_node_selectors=("cloud.example.com/*",), strip_tolerations=("spot",))
REPLACES = MirrorTransform(
    "here",
    strip_node_selectors=("cloud.example.com/*",),
    replace_node_selectors=((("cloud.example.com/tier", "spot"), ("tier", "cheap")), (("zone", "a"), ("zone", "b"))),
)
SPOT = {"key": "spot", "operator": "Exists"}
GATE = {"name": f"{KUEUE}topology"}


@pytest.mark.parametrize(
    ("transform", "spec", "expected"),
    [
        pytest.param(PLAIN, {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b"}}, id="nothing is set"),
        pytest.param(
            STRIPS,
            {"nodeSelector": {"cloud.example.com/tier": "spot", "a": "b"}},
            {"nodeSelector": {"a": "b"}},
            id="one key of two",
        ),
        pytest.param(STRIPS, {"nodeSelector": {"cloud.example.com/tier": "x"}, "x": 1}, {"x": 1}, id="all of them"),
        pytest.param(STRIPS, {"tolerations": [SPOT, {"key": "b"}]}, {"tolerations": [{"key": "b"}]}, id="a toleration"),
        pytest.param(STRIPS, {"tolerations": [SPOT]}, {}, id="all tolerations"),
        pytest.param(
            STRIPS,
            {"tolerations": [{"operator": "Exists"}, "x", {"key": 1}]},
            {"tolerations": [{"operator": "Exists"}, "x", {"key": 1}]},
            id="tolerations without a key, or that are none",
        ),
        pytest.param(
            REPLACES,
            {"nodeSelector": {"cloud.example.com/tier": "spot"}},
            {"nodeSelector": {"tier": "cheap"}},
            id="replaced, not stripped",
        ),
        pytest.param(REPLACES, {"nodeSelector": {"cloud.example.com/tier": "x"}}, {}, id="another value is stripped"),
        pytest.param(
            REPLACES,
            {"nodeSelector": {"cloud.example.com/tier": "spot", "tier": "good"}},
            {"nodeSelector": {"tier": "good"}},
            id="what the user asks for stays",
        ),
        pytest.param(REPLACES, {"nodeSelector": {"zone": "a"}}, {"nodeSelector": {"zone": "b"}}, id="the same key"),
        pytest.param(PLAIN, {"schedulingGates": [GATE]}, {}, id="the gate of topologies"),
        pytest.param(
            PLAIN, {"schedulingGates": [{"name": "own"}, GATE]}, {"schedulingGates": [{"name": "own"}]}, id="own gates"
        ),
        pytest.param(
            REPLACES, {"nodeSelector": "x", "tolerations": {}}, {"nodeSelector": "x", "tolerations": {}}, id="nonsense"
        ),
    ],
)
def test_directives_of_this_clusters_nodes(transform: MirrorTransform, spec: Any, expected: Any) -> None:
    """By the settings ``mirrors.strip`` and ``mirrors.replace``; what is given is left as it is."""
    before = repr(spec)
    assert template_for_worker({"spec": spec}, transform) == {"spec": expected}
    assert repr(spec) == before


def test_a_queues_notes_stay_here() -> None:
    """Whatever the settings are; what the user asks of a queue goes along."""
    kept = {f"{KUEUE}queue-name": "users", f"{KUEUE}podset-required-topology": "rack", "team": "a"}
    notes = dict.fromkeys((*NOTES, f"{KUEUE}cluster-queue-name"), "x")
    template = {"metadata": {"labels": kept | notes, "annotations": notes}, "spec": {}}
    assert template_for_worker(template, PLAIN) == {"metadata": {"labels": kept}, "spec": {}}


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ([{"metadata": {"labels": {names.POD_SET: "main"}}}], True),
        ([{"spec": {}}, {"metadata": {"labels": {names.POD_SET: "workers"}}}], True),
        ([{"metadata": {"labels": {"team": "a"}}}], False),
        ([None, "x", {"metadata": None}, {"metadata": {"labels": []}}], False),
        ([], False),
    ],
)
def test_an_admitted_mirror_is_known_by_its_note(templates: list[Any], expected: bool) -> None:
    """Kueue labels the pods of what it admits."""
    assert is_admitted(templates) is expected
