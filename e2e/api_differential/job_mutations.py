"""What may break a Job's spec or metadata, or change it: one named change for each thing that a rule speaks of.

For creates (C, P, SP) and updates (U) alike; the same change is good for one Job and bad for another. Values have the
API's types. Not here: pods (``pod_mutations``), statuses (``status_mutations``).
"""

from __future__ import annotations

from random import Random

from e2e.api_differential.features import JOB_FEATURES, PLAIN
from e2e.api_differential.steps import ABSENT, Change, Json, dotted, find, one_of, put

LABELS = ("spec", "template", "metadata", "labels")
GENERATED = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
INDEX_TEXTS = (
    "",
    "0",
    "0,2",
    "0-1",
    "00,+1",
    "0,1,2",
    "0-1-2",
    "a",
    "0,,1",
    " 1",
    "-1",
    "9",
    "0-99",
    "2-1",
    "1-1",
    "2,1",
    "0-2,1",
    "0-",
    "1_0",
    '"<é',
    "٣",
    "99999999999999999999",
)
_LONG = "a" * 50
_BAD_LABELS: tuple[Json, ...] = (
    {"": "x"},
    {"a b": "x"},
    {"a/b/c": "x"},
    {"UPPER.example/x": "x"},
    {"/x": ""},
    {"x/": ""},
    {"x" * 64: "y"},
    {"ok": "a b"},
    {"ok": "-"},
    {"ok": "v" * 64},
    {"ok": 'é"<'},
    {"a b": "x y", "fine": "fine"},
    {"fine": "fine"},
    {},
)

_RULES = ("spec", "podFailurePolicy", "rules")
_SUCCESS_RULES = ("spec", "successPolicy", "rules")


def _generated_label(random: Random, job: Json) -> None:
    put(job, (*LABELS, random.choice(GENERATED)), random.choice((ABSENT, "", "wrong", "bad value")))


def _job_labels(random: Random, job: Json) -> None:
    put(job, ("metadata", "labels"), random.choice(_BAD_LABELS))


def _template_label(random: Random, job: Json) -> None:
    labels = find(job, LABELS)
    put(job, LABELS, {**(labels if isinstance(labels, dict) else {}), **random.choice(_BAD_LABELS)})


def _finalizers(random: Random, job: Json) -> None:
    finalizers = list(find(job, ("metadata", "finalizers")) or [])
    new = random.choice(("x", "example.com/y", "a b/c", "", "foregroundDeletion", "orphan", "a/b/c"))
    both = ["foregroundDeletion", "orphan"]
    put(job, ("metadata", "finalizers"), random.choice(([], [*finalizers, new], [new], [*finalizers, *both])))


def _owners(random: Random, job: Json) -> None:
    owner: Json = {"apiVersion": "apps/v1", "kind": "X", "name": "x", "uid": "u"}
    broken = random.choice(("apiVersion", "kind", "name", "uid"))
    controller: Json = {**owner, "controller": True}
    owners: tuple[list[Json], ...] = (
        [{**owner, broken: ""}],
        [controller, {**controller, "name": "y"}],
        [{**owner, "apiVersion": "v1", "kind": "Event"}],
        [{**owner, "apiVersion": "a/b/c"}],
        [],
    )
    put(job, ("metadata", "ownerReferences"), random.choice(owners))


def _selector(random: Random, job: Json) -> None:
    selectors: tuple[object, ...] = (
        ABSENT,
        {},
        {"matchLabels": {"app": "mine"}},
        {"matchLabels": {"app": "x"}},
        {"matchLabels": {"batch.kubernetes.io/controller-uid": "wrong"}},
        {"matchLabels": {"job-name": find(job, ("metadata", "name")) or "none"}},
        {"matchLabels": {"a b": "x"}},
        {"matchLabels": {"ok": "a b"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"key": "app", "operator": "In"}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a", "b c"]}]},
        {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["a"]}]},
        {"matchExpressions": [{"key": "", "operator": ""}]},
        {"matchExpressions": [{"key": "a b", "operator": "DoesNotExist"}]},
    )
    put(job, ("spec", "selector"), random.choice(selectors))


def _failure_rules(random: Random, job: Json) -> None:
    """P1, and a policy where there was none, or none where there was one."""
    plain: Json = {"action": "Count", "onPodConditions": [{"type": "X"}]}
    policies = [{"rules": [plain] * number} for number in (0, 1, 20, 21)]
    put(job, ("spec", "podFailurePolicy"), random.choice((ABSENT, *policies)))


def _failure_rule(random: Random, job: Json) -> None:
    """P2–P14: one more rule, or a changed one."""
    rule: Json = {"action": random.choice(("Count", "Ignore", "FailJob", "FailIndex", "", "Retry"))}
    kinds = random.choice((("codes",), ("conditions",), ("codes", "conditions"), ()))
    if "codes" in kinds:
        rule["onExitCodes"] = _exit_codes(random)
    if "conditions" in kinds:
        rule["onPodConditions"] = _pod_conditions(random)
    rules = list(find(job, _RULES) or [])
    if rules and random.random() < 0.3:
        rules[random.randrange(len(rules))] = rule
    else:
        rules.append(rule)
    put(job, _RULES, rules)


def _exit_codes(random: Random) -> Json:
    values: tuple[list[int], ...] = (
        [],
        [0],
        [1],
        [1, 1],
        [2, 1],
        [3, 1, 3, 0],
        [-1, 0],
        list(range(1, 256)),
        list(range(1, 257)),
    )
    codes: Json = {"operator": random.choice(("In", "In", "NotIn", "", "Not")), "values": random.choice(values)}
    if random.random() < 0.4:
        codes["containerName"] = random.choice(("main", "init-0", "second", "nobody", ""))
    return codes


def _pod_conditions(random: Random) -> list[Json]:
    types = ("DisruptionTarget", "", "a b", "A.example/x", "a.example/x", "x" * 64, "a/b/c", "/x")
    number = random.choice((0, 1, 1, 2, 20, 21))
    conditions: list[Json] = []
    for _ in range(number):
        condition: Json = {"type": random.choice(types if number < 5 else types[:1])}
        if random.random() < 0.6:
            condition["status"] = random.choice(("True", "False", "Unknown", "", "Maybe"))
        conditions.append(condition)
    return conditions


def _success_rules(random: Random, job: Json) -> None:
    """SP1, SP2."""
    plain: Json = {"succeededCount": 1}
    policies = [{"rules": [plain] * number} for number in (0, 1, 20, 21)]
    put(job, ("spec", "successPolicy"), random.choice((ABSENT, *policies)))


def _success_rule(random: Random, job: Json) -> None:
    """SP3–SP6."""
    rule: Json = {}
    if random.random() < 0.7:
        rule["succeededIndexes"] = "0," * 32_769 if random.random() < 0.05 else random.choice(INDEX_TEXTS)
    if random.random() < 0.5:
        rule["succeededCount"] = random.choice((-1, 0, 1, 2, 4, 99))
    put(job, _SUCCESS_RULES, [*(find(job, _SUCCESS_RULES) or []), rule])


def _indexed_rule(random: Random, job: Json) -> None:
    """SP4–SP6 and X1, where nothing else is wrong."""
    job["spec"] |= {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    put(job, _SUCCESS_RULES, [])
    _success_rule(random, job)


def _tandem(random: Random, job: Json) -> None:
    """U3."""
    size = random.choice((0, 1, 2, 4, 6))
    job["spec"] |= {"completions": size, "parallelism": size}


def _unsuspend_and_change(random: Random, job: Json) -> None:
    """U4: what decides is whether the old one was suspended."""
    job["spec"]["suspend"] = random.random() < 0.5
    put(job, dotted("spec.template.spec.nodeSelector"), {"zone": "b"})


def _huge_limits(random: Random, job: Json) -> None:
    """C22–C24."""
    job["spec"] |= {
        "completionMode": "Indexed",
        "completions": random.choice((100_000, 100_001, 200_000)),
        "parallelism": random.choice((1, 10_000, 10_001, 100_001)),
        "backoffLimitPerIndex": 1,
    }
    limit = random.choice((None, 10_000, 10_001, 100_000, 100_001))
    put(job, ("spec", "maxFailedIndexes"), ABSENT if limit is None else limit)


def _name(random: Random, job: Json) -> None:
    odd = ("", "Upper", "a_b", "a.b", "-a", "a/b", "é", "..", "a%b", "1")
    job["metadata"]["name"] = random.choice((*odd, "a" * 63, "a" * 64, f"{_LONG}.{_LONG}", "a" * 254))


def _generate_name(random: Random, job: Json) -> None:
    if random.random() < 0.8:
        job["metadata"].pop("name", None)
    job["metadata"]["generateName"] = random.choice(("g-", "g", "g" * 63, "g" * 250, "Bad_", "g.", "-"))


def _annotations(random: Random, job: Json) -> None:
    annotations: tuple[Json, ...] = ({"a b": ""}, {"A/x": "y"}, {"ok": "é\n"}, {"big": "x" * 262_144}, {"UP": "x"}, {})
    put(job, random.choice((("metadata", "annotations"), (*LABELS[:-1], "annotations"))), random.choice(annotations))


def _kept_by_the_server(random: Random, job: Json) -> None:
    """What a client may send and the server knows better (DF9, DF11, U11)."""
    for name, value in {
        "generation": 77,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 9,
        "selfLink": "/x",
    }.items():
        if random.random() < 0.4:
            job["metadata"][name] = value
    if random.random() < 0.5:
        job["status"] = {"active": 3}


def _without_versions(random: Random, job: Json) -> None:
    """DF14: a write that does not say what it was written for."""
    for name in ("uid", "resourceVersion", "namespace", "creationTimestamp", "generation"):
        if random.random() < 0.5:
            job["metadata"].pop(name, None)


def _without_spec(random: Random, job: Json) -> None:
    """Back to the least there can be, or less."""
    put(job, ("spec",), random.choice(({}, PLAIN["spec"], PLAIN["spec"])))


JOB_MUTATIONS: dict[str, Change] = {
    "name": _name,
    "generateName": _generate_name,
    "labels": _job_labels,
    "annotations": _annotations,
    "finalizers": _finalizers,
    "owners": _owners,
    "server's": _kept_by_the_server,
    "generated label": _generated_label,
    "template label": _template_label,
    "selector": _selector,
    "manualSelector": one_of("spec.manualSelector", True, False, ABSENT),
    "parallelism": one_of("spec.parallelism", ABSENT, None, -1, 0, 1, 2, 10_001, 100_001, 2**31 - 1),
    "completions": one_of("spec.completions", ABSENT, None, -1, 0, 1, 2, 3, 100_001),
    "tandem": _tandem,
    "activeDeadlineSeconds": one_of("spec.activeDeadlineSeconds", ABSENT, -1, 0, 7, 2**62),
    "backoffLimit": one_of("spec.backoffLimit", ABSENT, -1, 0, 7),
    "ttl": one_of("spec.ttlSecondsAfterFinished", ABSENT, -1, 0, 7),
    "backoffLimitPerIndex": one_of("spec.backoffLimitPerIndex", ABSENT, -1, 0, 2),
    "maxFailedIndexes": one_of("spec.maxFailedIndexes", ABSENT, -1, 0, 1, 4, 100_001),
    "huge limits": _huge_limits,
    "completionMode": one_of("spec.completionMode", ABSENT, "", "Indexed", "NonIndexed", 'indexed"'),
    "suspend": one_of("spec.suspend", ABSENT, True, False),
    "podReplacementPolicy": one_of(
        "spec.podReplacementPolicy", ABSENT, "", "Failed", "TerminatingOrFailed", "Immediately"
    ),
    "managedBy": one_of(
        "spec.managedBy",
        ABSENT,
        "",
        "acme",
        "/x",
        "acme.io/",
        "Acme.io/x",
        "a_b.io/x y",
        "acme.io/x y",
        "acme.io/x?é",
        "acme.io/a/b,c;d=e:f@g",
        "acme.io/" + "x" * 56,
        f"{_LONG}.io/{_LONG} ",
        "kubernetes.io/job-controller",
    ),
    "failure rules": _failure_rules,
    "failure rule": _failure_rule,
    "success rules": _success_rules,
    "success rule": _success_rule,
    "indexed rule": _indexed_rule,
    "unsuspend and change": _unsuspend_and_change,
    "without spec": _without_spec,
    "without versions": _without_versions,
    **{f"+ {name}": change for name, change in JOB_FEATURES.items() if name not in ("per index", "success policy")},
}
