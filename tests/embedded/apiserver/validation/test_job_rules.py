"""What the API refuses in a new Job, rule by rule, with its fields, reasons, words and order."""

from __future__ import annotations

import pytest

from mirror.batch.feature_gates import FeatureGates
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.validation.jobs import check_create
from tests.embedded.apiserver.validation.jobs import UID, Json, created, job

NEGATIVE = "-1: must be greater than or equal to 0"
INDEXED: Json = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
PER_INDEX: Json = INDEXED | {"backoffLimitPerIndex": 1}
MANY: Json = PER_INDEX | {"completions": 100_001}
RULES = "spec.podFailurePolicy.rules"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
CAPPED = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"
LONG = "0," * 32768 + "1"
COUNTED = "spec.successPolicy.rules[0].succeededCount"


def invalid(field: str, detail: str) -> Violation:
    return Violation(field, "FieldValueInvalid", f"Invalid value: {detail}")


def required(field: str, detail: str = "") -> Violation:
    return Violation(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def unsupported(field: str, value: str, *supported: str) -> Violation:
    listed = ", ".join(f'"{one}"' for one in supported)
    return Violation(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')


def policy(*rules: Json, **spec: object) -> Json:
    return {"podFailurePolicy": {"rules": list(rules)}, **spec}


def on_exit(action: str = "FailJob", **requirement: object) -> Json:
    return {"action": action, "onExitCodes": {"operator": "In", "values": [1], **requirement}}


def on_condition(**pattern: object) -> Json:
    return {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", **pattern}]}


def success(*rules: Json, **spec: object) -> Json:
    return INDEXED | {"successPolicy": {"rules": list(rules)}} | spec


def with_labels(spec: Json | None = None, **labels: str) -> Json:
    request = job(spec)
    request["spec"]["template"]["metadata"] = {"labels": {key.replace("__", "-"): one for key, one in labels.items()}}
    request["metadata"]["labels"] = {"own": "x"}
    return request


REFUSED: dict[str, tuple[Json, list[Violation]]] = {
    "C1 a name in capitals": (
        job({"manualSelector": True, "selector": {}}, meta={"name": "Train"}),
        [invalid("metadata.name", f'"Train": {SUBDOMAIN}')],
    ),
    "C1 no name": (
        job({"manualSelector": True, "selector": {}}, meta={"name": ""}),
        [required("metadata.name", "name or generateName is required")],
    ),
    "C2 a name that makes no label value": (
        job(meta={"name": "a" * 64}),
        [invalid("spec.template.labels", f'"{"a" * 64}": must be no more than 63 bytes')] * 2,
    ),
    "C3 a name that makes no host name": (
        job(INDEXED, meta={"name": "a.b"}),
        [
            invalid("metadata.name", '"a.b": will not able to create pod with invalid DNS label: a.b-2'),
        ],
    ),
    "C5 a generated label of another value": (
        with_labels(job__name="other"),
        [
            invalid(
                "spec.template.metadata.labels[job-name]",
                f'{{"batch.kubernetes.io/controller-uid":"{UID}","batch.kubernetes.io/job-name":"train",'
                f'"controller-uid":"{UID}","job-name":"other"}}: must be \'train\'',
            )
        ],
    ),
    "C6 a selector of the user": (
        with_labels({"selector": {"matchLabels": {"app": "x"}}}, app="x"),
        [
            invalid(
                "spec.selector",
                f'{{"matchLabels":{{"app":"x","batch.kubernetes.io/controller-uid":"{UID}"}}}}:'
                " `selector` not auto-generated",
            )
        ],
    ),
    "C7 a manual selector that is missing": (
        job({"manualSelector": True}),
        [
            required("spec.selector"),
            invalid("spec.template.metadata.labels", "null: `selector` does not match template `labels`"),
        ],
    ),
    "C8 a manual selector that matches no pod": (
        with_labels({"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}}, app="y"),
        [invalid("spec.template.metadata.labels", '{"app":"y"}: `selector` does not match template `labels`')],
    ),
    "C9 a malformed selector": (
        job(
            {
                "manualSelector": True,
                "selector": {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "", "operator": "Is"}]},
            }
        ),
        [
            required(
                "spec.selector.matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"
            ),
            invalid("spec.selector.matchExpressions[1].operator", '"Is": not a valid selector operator'),
            invalid("spec.selector.matchExpressions[1].key", '"": name part must be non-empty'),
            invalid("spec.selector.matchExpressions[1].key", f'"": {NAME_PART}'),
        ],
    ),
    "C10 negative numbers": (
        job(
            INDEXED
            | {
                "activeDeadlineSeconds": -1,
                "backoffLimit": -1,
                "ttlSecondsAfterFinished": -1,
                "backoffLimitPerIndex": -1,
                "maxFailedIndexes": -1,
            }
        ),
        [
            invalid(f"spec.{name}", NEGATIVE)
            for name in (
                "activeDeadlineSeconds",
                "backoffLimit",
                "ttlSecondsAfterFinished",
                "backoffLimitPerIndex",
                "maxFailedIndexes",
            )
        ],
    ),
    "C10 negative counts": (
        job({"parallelism": -1, "completions": -1}),
        [invalid("spec.parallelism", NEGATIVE), invalid("spec.completions", NEGATIVE)],
    ),
    "C11 a cap without a limit": (
        job(INDEXED | {"maxFailedIndexes": 1}),
        [required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")],
    ),
    "C12 an empty manager": (job({"managedBy": ""}), [required("spec.managedBy")]),
    "C13 a manager without a domain": (
        job({"managedBy": "me"}),
        [invalid("spec.managedBy", '"me": must be a domain-prefixed path (such as "acme.io/foo")')],
    ),
    "C14 a manager of an odd domain": (
        job({"managedBy": "Acme.io/x"}),
        [invalid("spec.managedBy", f'"Acme.io": {SUBDOMAIN}')],
    ),
    "C15 a manager of an odd path": (
        job({"managedBy": "acme.io/a b"}),
        [
            invalid(
                "spec.managedBy",
                "\"a b\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
            )
        ],
    ),
    "C16 a manager of a long name": (
        job({"managedBy": "acme.io/" + "x" * 56}),
        [Violation("spec.managedBy", "FieldValueTooLong", "Too long: may not be more than 63 bytes")],
    ),
    "C17 an unknown mode": (
        job({"completionMode": "Odd"}),
        [unsupported("spec.completionMode", "Odd", "NonIndexed", "Indexed")],
    ),
    "C18 an Indexed Job without completions": (
        job({"completionMode": "Indexed", "parallelism": 1}),
        [required("spec.completions", "when completion mode is Indexed")],
    ),
    "C19 too many pods at once": (
        job(INDEXED | {"parallelism": 100_001}),
        [
            invalid(
                "spec.parallelism",
                "100001: must be less than or equal to 100000 when completion mode is Indexed",
            )
        ],
    ),
    "C20 a cap above the completions": (
        job(PER_INDEX | {"maxFailedIndexes": 4}),
        [invalid("spec.maxFailedIndexes", "4: must be less than or equal to completions")],
    ),
    "C21 too high a cap": (
        job(PER_INDEX | {"completions": 100_000, "maxFailedIndexes": 100_001}),
        [
            invalid("spec.maxFailedIndexes", "100001: must be less than or equal to completions"),
            invalid("spec.maxFailedIndexes", "100001: must be less than or equal to 100000"),
        ],
    ),
    "C22 many completions without a cap": (
        job(MANY),
        [required("spec.maxFailedIndexes", "must be specified when completions is above 100000")],
    ),
    "C23, C24 many completions, pods and failures": (
        job(MANY | {"parallelism": 10_001, "maxFailedIndexes": 10_001}),
        [invalid("spec.parallelism", f"10001: {CAPPED}"), invalid("spec.maxFailedIndexes", f"10001: {CAPPED}")],
    ),
    "C25 limits of indexes without indexes": (
        job({"backoffLimitPerIndex": 1, "maxFailedIndexes": 1}),
        [
            invalid("spec.backoffLimitPerIndex", "1: requires indexed completion mode"),
            invalid("spec.maxFailedIndexes", "1: requires indexed completion mode"),
        ],
    ),
    "C26 early replacement beside a failure policy": (
        job({"podFailurePolicy": {}, "podReplacementPolicy": "TerminatingOrFailed"}),
        [unsupported("spec.podReplacementPolicy", "TerminatingOrFailed", "Failed")],
    ),
    "C27 an unknown replacement": (
        job({"podReplacementPolicy": "Odd"}),
        [unsupported("spec.podReplacementPolicy", "Odd", "Failed", "TerminatingOrFailed")],
    ),
    "C28 no restart policy": (
        job(pod={"restartPolicy": ""}),
        [required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')],
    ),
    "C29 an unknown restart policy": (
        job(pod={"restartPolicy": "Odd"}),
        [
            unsupported("spec.template.spec.restartPolicy", "Odd", "Always", "OnFailure", "Never"),
            unsupported("spec.template.spec.restartPolicy", "Odd", "OnFailure", "Never"),
        ],
    ),
    "C30 restarts beside a failure policy": (
        job({"podFailurePolicy": {}}, pod={"restartPolicy": "OnFailure"}),
        [
            invalid(
                "spec.template.spec.restartPolicy",
                '"OnFailure": only "Never" is supported when podFailurePolicy is specified',
            )
        ],
    ),
    "C31 no containers": (job(pod={"containers": []}), [required("spec.template.spec.containers")]),
    "C32 a success policy without completions": (
        job({"completionMode": "Indexed", "parallelism": 1, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
        [required("spec.completions", "when completion mode is Indexed")],
    ),
    "P1 many rules": (
        job(policy(*[on_exit()] * 21)),
        [Violation(RULES, "FieldValueTooMany", "Too many: 21: must have at most 20 items")],
    ),
    "P2 no action": (
        job(policy(on_exit(""))),
        [required(f"{RULES}[0].action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')],
    ),
    "P3 failing an index that has no limit": (
        job(policy(on_exit("FailIndex"))),
        [invalid(f"{RULES}[0].action", '"FailIndex": requires the backoffLimitPerIndex to be set')],
    ),
    "P4 an unknown action": (
        job(policy(on_exit("Odd"))),
        [unsupported(f"{RULES}[0].action", "Odd", "Count", "FailIndex", "FailJob", "Ignore")],
    ),
    "P5 codes and conditions": (
        job(policy(on_exit() | on_condition())),
        [invalid(f"{RULES}[0]", "specifying both OnExitCodes and OnPodConditions is not supported")],
    ),
    "P6 neither codes nor conditions": (
        job(policy({"action": "Count"})),
        [invalid(f"{RULES}[0]", "specifying one of OnExitCodes and OnPodConditions is required")],
    ),
    "P7 no operator": (
        job(policy(on_exit(operator=""))),
        [required(f"{RULES}[0].onExitCodes.operator", 'valid values: ["In" "NotIn"]')],
    ),
    "P7 an unknown operator": (
        job(policy(on_exit(operator="Is"))),
        [unsupported(f"{RULES}[0].onExitCodes.operator", "Is", "In", "NotIn")],
    ),
    "P8 an unknown container": (
        job(policy(on_exit(containerName="other"))),
        [
            invalid(
                f"{RULES}[0].onExitCodes.containerName",
                '"other": must be one of the container or initContainer names in the pod template',
            )
        ],
    ),
    "P9 no values": (
        job(policy(on_exit(values=[]), {"action": "Count", "onExitCodes": {"operator": "In"}})),
        [
            invalid(f"{RULES}[0].onExitCodes.values", "[]: at least one value is required"),
            invalid(f"{RULES}[1].onExitCodes.values", "null: at least one value is required"),
        ],
    ),
    "P9 many values": (
        job(policy(on_exit(values=list(range(1, 257))))),
        [
            Violation(
                f"{RULES}[0].onExitCodes.values", "FieldValueTooMany", "Too many: 256: must have at most 255 items"
            )
        ],
    ),
    "P10, P11 zero, twice, and out of order": (
        job(policy(on_exit(values=[2, 2, 0]))),
        [
            Violation(f"{RULES}[0].onExitCodes.values[1]", "FieldValueDuplicate", "Duplicate value: 2"),
            invalid(f"{RULES}[0].onExitCodes.values[2]", "0: must not be 0 for the In operator"),
            invalid(f"{RULES}[0].onExitCodes.values", "[2,2,0]: must be ordered"),
        ],
    ),
    "P12 many conditions": (
        job(policy({"action": "Count", "onPodConditions": [{"type": "X"}] * 21})),
        [Violation(f"{RULES}[0].onPodConditions", "FieldValueTooMany", "Too many: 21: must have at most 20 items")],
    ),
    "P13, P14 an odd condition": (
        job(policy(on_condition(type="-", status="Odd"))),
        [
            invalid(f"{RULES}[0].onPodConditions[0].type", f'"-": {NAME_PART}'),
            unsupported(f"{RULES}[0].onPodConditions[0].status", "Odd", "False", "True", "Unknown"),
        ],
    ),
    "SP1 success by index without indexes": (
        job({"successPolicy": {"rules": [{"succeededCount": 1}]}}),
        [
            invalid(
                "spec.successPolicy",
                '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires indexed completion mode',
            )
        ],
    ),
    "SP2 no rules": (
        job(success()),
        [
            required(
                "spec.successPolicy.rules", "at least one rules must be specified when the successPolicy is specified"
            )
        ],
    ),
    "SP2 many rules": (
        job(success(*[{"succeededCount": 1}] * 21)),
        [Violation("spec.successPolicy.rules", "FieldValueTooMany", "Too many: 21: must have at most 20 items")],
    ),
    "SP3 a rule of nothing": (
        job(success({})),
        [
            required(
                "spec.successPolicy.rules[0]",
                "at least one of succeededCount or succeededIndexes must be specified",
            )
        ],
    ),
    "SP4 long index text": (
        job(success({"succeededIndexes": LONG})),
        [
            Violation(
                "spec.successPolicy.rules[0].succeededIndexes",
                "FieldValueTooLong",
                "Too long: may not be more than 65536 bytes",
            ),
            invalid(
                "spec.successPolicy.rules[0].succeededIndexes",
                f'"{LONG}": error parsing succeededIndexes: non-increasing order, previous: 0, current: 0',
            ),
        ],
    ),
    "SP5 bad index text": (
        job(success({"succeededIndexes": "3"})),
        [
            invalid(
                "spec.successPolicy.rules[0].succeededIndexes",
                '"3": error parsing succeededIndexes: too large index: "3"',
            )
        ],
    ),
    "SP6 a negative count": (job(success({"succeededCount": -1})), [invalid(COUNTED, NEGATIVE)]),
    "SP6 more than there are": (
        job(success({"succeededCount": 4, "succeededIndexes": "0-1"})),
        [
            invalid(COUNTED, "4: must be less than or equal to 3 (the number of specified completions)"),
            invalid(
                COUNTED,
                "4: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
            ),
        ],
    ),
    "RN3 an empty name": (
        job(policy(on_exit() | {"name": ""})),
        [invalid(f"{RULES}[0].name", '"": must not be empty')],
    ),
    "RN3 a name twice": (
        job(policy(on_exit() | {"name": "A"}, on_exit() | {"name": "A"})),
        [Violation(f"{RULES}[1].name", "FieldValueDuplicate", 'Duplicate value: "A"')],
    ),
    "RN3 a name that is no reason": (
        job(policy(on_exit() | {"name": "a-b"})),
        [
            invalid(
                f"{RULES}[0].name",
                "\"a-b\": must consist of letters, digits, '_', ',' and ':' and not end with ',' or ':'",
            )
        ],
    ),
    "RN3 a long name": (
        job(policy(on_exit() | {"name": "a" * 112})),
        [Violation(f"{RULES}[0].name", "FieldValueTooLong", "Too long: may not be more than 111 bytes")],
    ),
    "RN5 the index of an unnamed rule": (
        job(policy(on_exit() | {"name": "1"}, on_exit())),
        [invalid(f"{RULES}[0].name", '"1": must not be the index of another rule')],
    ),
    "metadata: labels and annotations": (
        job(meta={"labels": {"a b": "-"}, "annotations": {"A/B/C": ""}}),
        [
            invalid("metadata.labels", f'"a b": {NAME_PART}'),
            invalid("metadata.labels", f'"-": {LABEL_VALUE}'),
            invalid(
                "metadata.annotations",
                f'"A/B/C": {NAME_PART.replace("name part", "a valid label key")} with an optional DNS subdomain prefix'
                " and '/' (e.g. 'example.com/MyName')",
            ),
        ],
    ),
    "metadata: large annotations": (
        job(meta={"annotations": {"a": "x" * 256 * 1024}}),
        [Violation("metadata.annotations", "FieldValueTooLong", "Too long: may not be more than 262144 bytes")],
    ),
    "metadata: owners": (
        job(
            meta={
                "ownerReferences": [
                    {"apiVersion": "", "kind": "", "name": "", "uid": ""},
                    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": True},
                ]
            }
        ),
        [
            invalid("metadata.ownerReferences.apiVersion", '"": version must not be empty'),
            invalid("metadata.ownerReferences.kind", '"": must not be empty'),
            invalid("metadata.ownerReferences.name", '"": must not be empty'),
            invalid("metadata.ownerReferences.uid", '"": must not be empty'),
            invalid(
                "metadata.ownerReferences",
                '[{"apiVersion":"","kind":"","name":"","uid":""},'
                '{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1","controller":true},'
                '{"apiVersion":"v1","kind":"Pod","name":"b","uid":"2","controller":true}]: Only one reference can have'
                ' Controller set to true. Found "true" in references for Pod/a and Pod/b',
            ),
        ],
    ),
    "metadata: finalizers": (
        job(meta={"finalizers": ["orphan", "foregroundDeletion", "mine"]}),
        [
            invalid(
                "metadata.finalizers",
                '["orphan","foregroundDeletion","mine"]: finalizer orphan and foregroundDeletion cannot be both set',
            ),
            invalid(
                "metadata.finalizers[2]",
                '"mine": name is neither a standard finalizer name nor is it fully qualified',
            ),
        ],
    ),
}

ACCEPTED: dict[str, Json] = {
    "the smallest": job(),
    "C18 both counts by default": job(
        {"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededCount": 1}]}}
    ),
    "C33 more pods than completions": job({"completions": 1, "parallelism": 9, "activeDeadlineSeconds": 2**40}),
    "P1 a policy without rules": job(policy()),
    "P10 a negative exit code": job(policy(on_exit(values=[-1073741510, 0], operator="NotIn"))),
    "P8 an init container": job(
        policy(on_exit(containerName="prepare")), pod={"initContainers": [{"name": "prepare", "image": "x"}]}
    ),
    "SP5 no index at all": job(success({"succeededIndexes": ""})),
    "SP6 none needed": job(success({"succeededCount": 0})),
    "X2 numbers as Go reads them": job(success({"succeededIndexes": "00,+1,2"})),
    "RN3 its own index": job(policy(on_exit() | {"name": "0"}, on_exit() | {"name": "Memory:a,b_1"})),
    "a manual selector of nothing": job({"manualSelector": True, "selector": {}}),
}


@pytest.mark.parametrize(("request_", "violations"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(request_: Json, violations: list[Violation]) -> None:
    """C1–C32, P1–P14, SP1–SP6, RN3, RN5, in the order and the words (E4) of the server."""
    assert violations == check_create(created(request_))


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted(request_: Json) -> None:
    assert check_create(created(request_)) == []


def test_names_of_rules_are_not_looked_at_with_their_gate_off() -> None:
    """RN4."""
    gates = FeatureGates(pod_failure_policy_name=False)

    assert check_create(created(job(policy(on_exit() | {"name": "-"})), gates=gates), gates=gates) == []
