"""Valid Jobs of all kinds: a plain one, and features that make it another one. Drawn by ``jobs_of_all_kinds``.

Features that are drawn together go together; each leaves a Job that the API accepts. Not here: what breaks a Job
(``mutations``), and the features of pods (``pod_features``).
"""

from __future__ import annotations

from random import Random

from e2e.api_differential.pod_features import POD_FEATURES
from e2e.api_differential.steps import ABSENT, Catalogue, Change, Json, Step, all_of, drawn, one_of, put

PLAIN: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "plain"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}},
}

_EXIT_CODES: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 42]}}
_CONDITIONS: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
_RULES: tuple[Json, ...] = (
    _EXIT_CODES,
    _CONDITIONS,
    {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0]}},
    {"action": "Count", "onExitCodes": {"operator": "In", "values": [-3, 5], "containerName": "main"}},
    {"action": "Ignore", "onPodConditions": [{"type": "a.example/Odd", "status": "Unknown"}, {"type": "B"}]},
)


def _indexed(random: Random, job: Json) -> None:
    job["spec"] |= {"completionMode": "Indexed", "completions": random.choice((0, 1, 3, 5))}
    if random.random() < 0.7:
        job["spec"]["parallelism"] = random.choice((0, 1, 3, 5))


def _elastic(random: Random, job: Json) -> None:
    size = random.choice((1, 3, 5))
    job["spec"] |= {"completionMode": "Indexed", "completions": size, "parallelism": size}


def _huge(random: Random, job: Json) -> None:
    job["spec"] |= {"completionMode": "Indexed", "completions": random.choice((100_001, 250_000))}
    if random.random() < 0.5:
        limit = {"backoffLimitPerIndex": 1, "maxFailedIndexes": random.choice((0, 10_000)), "parallelism": 10_000}
        job["spec"] |= limit
    else:
        job["spec"]["parallelism"] = random.choice((10, 10_001, 100_000))  # warned of (DF17)


def _per_index(random: Random, job: Json) -> None:
    job["spec"]["backoffLimitPerIndex"] = random.choice((0, 1, 3))
    if random.random() < 0.5:
        job["spec"]["maxFailedIndexes"] = random.randint(0, job["spec"].get("completions", 0))


def _success_policy(random: Random, job: Json) -> None:
    completions = job["spec"].get("completions", 0)
    rules: list[Json] = []
    for _ in range(random.randint(1, 3)):
        rule: Json = {}
        if random.random() < 0.6:
            rule["succeededIndexes"] = random.choice(("0", "", f"0-{completions - 1}" if completions > 1 else "0"))
        if random.random() < 0.4 or not rule:
            rule["succeededCount"] = 0 if "succeededIndexes" in rule else random.randint(0, completions)
        rules.append(rule)
    job["spec"]["successPolicy"] = {"rules": rules}


def _pod_failure_policy(random: Random, job: Json) -> None:
    rules = random.choices(_RULES, k=random.randint(0, 3))
    if "backoffLimitPerIndex" in job["spec"] and random.random() < 0.7:
        rules.append({**_EXIT_CODES, "action": "FailIndex"})
    put(job, ("spec", "podFailurePolicy"), {"rules": rules})


def _manual_selector(random: Random, job: Json) -> None:
    job["spec"]["manualSelector"] = True
    put(job, ("spec", "template", "metadata", "labels"), {"app": "mine", "tier": "back"})
    expressions = [
        {"key": "tier", "operator": "In", "values": ["back", "front"]},
        {"key": "other", "operator": "DoesNotExist"},
    ]
    selectors: tuple[Json, ...] = (
        {"matchLabels": {"app": "mine"}},
        {"matchExpressions": expressions},
        {"matchLabels": {"app": "mine", "tier": "back"}, "matchExpressions": expressions[1:]},
        {},
    )
    job["spec"]["selector"] = random.choice(selectors)


def _limits(random: Random, job: Json) -> None:
    for name, values in {
        "backoffLimit": (0, 3, 2**31 - 1),
        "activeDeadlineSeconds": (0, 60, 2**40),
        "ttlSecondsAfterFinished": (0, 100),
        "podReplacementPolicy": ("Failed",),
    }.items():
        if random.random() < 0.4:
            job["spec"][name] = random.choice(values)


def _metadata(random: Random, job: Json) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "1b4db7eb-4057-5ddf-91e0-36dec72071f5"}
    for name, value in {
        "labels": {"team": "a", "example.com/x": ""},
        "annotations": {"note": "any text\nat all", "example.com/y": ""},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{**owner, "controller": True}, {**owner, "blockOwnerDeletion": False}],
    }.items():
        if random.random() < 0.4:
            put(job, ("metadata", name), value)


_KINDS: tuple[tuple[str, ...], ...] = (
    (),
    ("counts",),
    ("work queue",),
    ("indexed",),
    ("elastic",),
    ("indexed", "per index"),
    ("elastic", "per index"),
    ("elastic", "success policy"),
    ("elastic", "per index", "success policy"),
    ("huge",),
)
_EXTRAS = ("pod failure policy", "managed", "manual selector", "suspended", "limits", "metadata", "on failure")

JOB_FEATURES: dict[str, Change] = {
    "counts": all_of(one_of("spec.completions", 0, 1, 4, ABSENT), one_of("spec.parallelism", 0, 1, 2, 9)),
    "work queue": one_of("spec.parallelism", 1, 3),
    "indexed": _indexed,
    "elastic": _elastic,
    "huge": _huge,
    "per index": _per_index,
    "success policy": _success_policy,
    "pod failure policy": _pod_failure_policy,
    "managed": one_of("spec.managedBy", "example.com/nobody", "kubernetes.io/job-controller", "a.b/c/d~e%20"),
    "manual selector": _manual_selector,
    "suspended": one_of("spec.suspend", True),
    "limits": _limits,
    "metadata": _metadata,
    "on failure": one_of("spec.template.spec.restartPolicy", "OnFailure"),
}
FEATURES: Catalogue = JOB_FEATURES | POD_FEATURES


def jobs_of_all_kinds(random: Random) -> tuple[Step, ...]:
    """Features of a valid Job."""
    names = list(random.choice(_KINDS))
    names += [name for name in _EXTRAS if random.random() < 0.2]
    if "pod failure policy" in names and "on failure" in names:
        names.remove("on failure")
    pods = [name for name in POD_FEATURES if random.random() < random.choice((0.02, 0.02, 0.3))]
    return drawn(random, names + pods)
