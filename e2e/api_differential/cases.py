"""Cases: requests to make, drawn from one seed. Each has a number, and can be made again from its steps.

Creates begin with a plain Job, updates and status writes with an object that the server has (``stored``). Not here:
what the server says (``wire``), what we say (``ours``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from e2e.api_differential.anywhere import ANYWHERE
from e2e.api_differential.features import FEATURES, PLAIN, jobs_of_all_kinds
from e2e.api_differential.job_mutations import JOB_MUTATIONS
from e2e.api_differential.pod_mutations import POD_MUTATIONS
from e2e.api_differential.status_mutations import STATUS_MUTATIONS
from e2e.api_differential.steps import Catalogue, Json, Step, applied, drawn

MUTATIONS: Catalogue = JOB_MUTATIONS | POD_MUTATIONS | ANYWHERE
_ALL: Catalogue = {**FEATURES, **MUTATIONS, **STATUS_MUTATIONS}
# The URL names the object, and the server compares: that is the business of the part that knows URLs.
# Half of all that may break is in the pods, and the Job's own fields have more rules that are ours to know.
_JOBS_OWN = 2
_NOT_IN_UPDATES = frozenset(("name", "generateName"))
_RICH = (
    "name",
    "selector",
    "managedBy",
    "failure rule",
    "failure rule",
    "success rule",
    "success rule",
    "indexed rule",
)
"""Changes that can go wrong in many ways, so that they are drawn more often."""
_OF_METADATA = ("labels", "annotations", "finalizers", "owners", "server's", "without versions")
_OFTEN_MUTABLE = (
    "suspend",
    "parallelism",
    "tandem",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttl",
    "maxFailedIndexes",
    "podReplacementPolicy",
    "manualSelector",
    "unsuspend and change",
    "pod's nodeSelector",
    "pod's tolerations",
    "one more of tolerations",
    "one more of schedulingGates",
    "node affinity",
    "affinity",
    "container's resources",
    "+ resources",
    "template metadata",
    "template metadata",
    "template label",
    "annotations",
    "annotations",
    "labels",
    "finalizers",
)


class Kind(StrEnum):
    """What is asked of the server."""

    CREATE = "create"
    UPDATE = "update"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Case:
    """One request: what it begins with, and what is done to it."""

    kind: Kind
    number: int
    start: Json
    """A plain Job, or the stored object."""
    steps: tuple[Step, ...]

    @property
    def body(self) -> Json:
        """What is sent."""
        return applied(_ALL, self.steps, self.start)

    def without(self, position: int) -> Case:
        """The same without one of its steps."""
        return replace(self, steps=self.steps[:position] + self.steps[position + 1 :])

    def __str__(self) -> str:
        return f"{self.kind} {self.number}: {', '.join(map(str, self.steps)) or 'as it is'}"


def creates(random: Random, count: int) -> Iterator[Case]:
    """Valid Jobs with up to four mutations."""
    names = (*MUTATIONS, *tuple(JOB_MUTATIONS) * _JOBS_OWN, *_RICH * 2 * _JOBS_OWN, *tuple(ANYWHERE) * 5)
    for number in range(count):
        steps = jobs_of_all_kinds(random) + _some(random, names)
        yield Case(Kind.CREATE, number, plain(f"job-{number}"), steps)


def updates(random: Random, count: int, stored: Sequence[Json]) -> Iterator[Case]:
    """Stored objects, put back with up to four changes."""
    all_names = (*MUTATIONS, *JOB_MUTATIONS, *tuple(ANYWHERE) * 2, "without versions")
    names = tuple(name for name in all_names if name not in _NOT_IN_UPDATES)
    for number in range(count):
        steps = _some(random, random.choice((names, _OFTEN_MUTABLE, _OFTEN_MUTABLE)))
        yield Case(Kind.UPDATE, number, _sendable(random.choice(stored)), steps)


def status_writes(random: Random, count: int, stored: Sequence[Json]) -> Iterator[Case]:
    """Stored objects, their status put back with up to four changes."""
    names = (*tuple(STATUS_MUTATIONS) * 3, *_OF_METADATA)
    for number in range(count):
        yield Case(Kind.STATUS, number, _sendable(random.choice(stored)), _some(random, names))


def plain(name: str) -> Json:
    """The Job that creates begin with."""
    job = copy.deepcopy(PLAIN)
    job["metadata"]["name"] = name
    return job


def _some(random: Random, names: Sequence[str]) -> tuple[Step, ...]:
    return drawn(random, random.choices(names, k=random.choice((0, 1, 1, 1, 2, 2, 3, 4))))


def _sendable(stored: Json) -> Json:
    job = copy.deepcopy(stored)
    job["metadata"].pop("managedFields", None)
    return job
