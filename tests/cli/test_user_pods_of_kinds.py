"""What ``mirror pods`` and ``mirror logs`` say where no pod is found: there is none, or nobody knows which they are."""

from __future__ import annotations

from mirror.cli.user.naming import Named
from mirror.cli.user.pods import no_pods_of
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.settings.kinds import KindEntry
from mirror.settings.load import Problem, read_section

SIMULATION = {
    "kind": "Simulation",
    "resource": "simulations.v1beta1.example.com",
    "suspend": {"path": "spec.paused"},
    "done": {"succeeded": ["phase=Done"], "failed": ["phase=Broken|Lost"]},
    "lost": {"set": {"phase": "Lost"}},
}


def said_of(**more: object) -> str:
    problems: list[Problem] = []
    entry = read_section(KindEntry, SIMULATION | more, problems, path="kinds[0]")
    assert entry is not None
    assert not problems
    return no_pods_of(Named(kinds_of([entry])["Simulation"], "train"), "not created yet")


def test_a_kind_without_pods_in_its_entry_says_so() -> None:
    said = said_of()
    setting = "kinds: Simulation sets no field pods (the labels of its pods)"
    assert said == f"the pods of Simulation train cannot be found: {setting}"


def test_where_it_is_known_which_they_are_there_are_none() -> None:
    has_none = "train has no pods on its worker: not created yet"
    assert said_of(pods={"example.com/simulation": "{name}"}) == f"Simulation {has_none}"
    assert no_pods_of(Named(JOB, "train"), "not created yet") == f"Job {has_none}"
    assert no_pods_of(Named(JOB, "train")) == "Job train has no pods on its worker"
