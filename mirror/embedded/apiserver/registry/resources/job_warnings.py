"""What an API server warns of when it accepts a Job (DF17). The pod template's warnings are in ``pods.warnings``."""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch.syntax import label_problems
from mirror.embedded.apiserver.apimachinery.canonical import Json
from mirror.embedded.apiserver.validation.pods.warnings import template_warnings

_MANY_COMPLETIONS, _MANY_PARALLEL = 100_000, 10_000
_TOO_MANY_INDEXES = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes"
    " might not be able to track completedIndexes when a big number of indexes fail"
)


def warnings_of(new: Json, old: Json | None) -> list[str]:
    """The texts for a prepared Job that the rules accept; ``old`` is None when it is created."""
    if old is None:
        return [*_name_warnings(new), *_spec_warnings(new["spec"])]
    if new["metadata"].get("generation") == old["metadata"].get("generation"):
        return []
    return list(_spec_warnings(new["spec"]))


def _name_warnings(job: Json) -> Iterator[str]:
    problems = label_problems(job["metadata"].get("name", ""))
    if problems:
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )


def _spec_warnings(spec: Json) -> Iterator[str]:
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec["completionMode"] == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > _MANY_PARALLEL:
        yield _TOO_MANY_INDEXES
    yield from template_warnings("spec.template", spec["template"])
