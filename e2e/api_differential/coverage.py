"""Which rules of the reference a run has met: by the causes of refusals, and by what changed in accepted updates.

A corpus that never meets a rule proves nothing about it, so the test in CI asks that every rule that can be met was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from e2e.api_differential.cases import Case, Kind
from e2e.api_differential.steps import Json, find
from e2e.api_differential.wire import PANIC, Answer

_TEXTS: Mapping[str, tuple[str, str]] = {
    "X1 parts": (r".*Indexes", "at most two parts"),
    "X1 integer": (r".*Indexes", "cannot convert string"),
    "X1 large": (r".*Indexes", "too large index"),
    "X1 order": (r".*Indexes", "non-increasing order"),
}
_CAUSES: Mapping[Kind, Mapping[str, tuple[str, str]]] = {
    Kind.CREATE: {
        "C1": (r"metadata\.name", r"RFC 1123 subdomain|no more than 253 characters"),
        "C1 none": (r"metadata\.name", "name or generateName is required"),
        "C2": (r"spec\.template\.labels", "must be no more than 63 bytes"),
        "C3": (r"metadata\.name", "will not able to create pod with invalid DNS label"),
        "C5": (r"spec\.template\.metadata\.labels\[.*", "must be '"),
        "C6": (r"spec\.selector", "`selector` not auto-generated"),
        "C7": (r"spec\.selector", "Required value"),
        "C8": (r"spec\.template\.metadata\.labels", "`selector` does not match template `labels`"),
        "C9 key": (r"spec\.selector\.match.*", "name part"),
        "C9 value": (r"spec\.selector\.matchLabels", "valid label must be"),
        "C10 parallelism": (r"spec\.parallelism", "greater than or equal to 0"),
        "C10 completions": (r"spec\.completions", "greater than or equal to 0"),
        "C10 activeDeadlineSeconds": (r"spec\.activeDeadlineSeconds", "greater than or equal to 0"),
        "C10 backoffLimit": (r"spec\.backoffLimit", "greater than or equal to 0"),
        "C10 ttlSecondsAfterFinished": (r"spec\.ttlSecondsAfterFinished", "greater than or equal to 0"),
        "C10 backoffLimitPerIndex": (r"spec\.backoffLimitPerIndex", "greater than or equal to 0"),
        "C10 maxFailedIndexes": (r"spec\.maxFailedIndexes", "greater than or equal to 0"),
        "C11": (r"spec\.backoffLimitPerIndex", "when maxFailedIndexes is specified"),
        "C12": (r"spec\.managedBy", "^Required value$"),
        "C13": (r"spec\.managedBy", "must be a domain-prefixed path"),
        "C14": (r"spec\.managedBy", "RFC 1123 subdomain"),
        "C15": (r"spec\.managedBy", "Invalid path"),
        "C16": (r"spec\.managedBy", "may not be more than 63 bytes"),
        "C17": (r"spec\.completionMode", "Unsupported value"),
        "C18": (r"spec\.completions", "when completion mode is Indexed"),
        "C19": (r"spec\.parallelism", "100000 when completion mode is Indexed"),
        "C20": (r"spec\.maxFailedIndexes", "less than or equal to completions"),
        "C21": (r"spec\.maxFailedIndexes", "less than or equal to 100000$"),
        "C22": (r"spec\.maxFailedIndexes", "must be specified when completions is above 100000"),
        "C23": (r"spec\.parallelism", "10000 when completions are above 100000"),
        "C24": (r"spec\.maxFailedIndexes", "10000 when completions are above 100000"),
        "C25 limit": (r"spec\.backoffLimitPerIndex", "requires indexed completion mode"),
        "C25 indexes": (r"spec\.maxFailedIndexes", "requires indexed completion mode"),
        "C26": (r"spec\.podReplacementPolicy", 'supported values: "Failed"$'),
        "C27": (r"spec\.podReplacementPolicy", 'supported values: "Failed", "TerminatingOrFailed"'),
        "C28": (r"spec\.template\.spec\.restartPolicy", 'valid values: "OnFailure", "Never"'),
        "C29": (r"spec\.template\.spec\.restartPolicy", 'supported values: "OnFailure", "Never"'),
        "C30": (r"spec\.template\.spec\.restartPolicy", 'only "Never" is supported'),
        "C31": (r"spec\.template\.spec\.containers", "Required value"),
        "P1": (r"spec\.podFailurePolicy\.rules", "at most 20"),
        "P2": (r".*\.action", "Required value: valid values"),
        "P3": (r".*\.action", "requires the backoffLimitPerIndex"),
        "P4": (r".*\.action", "Unsupported value"),
        "P5": (r"spec\.podFailurePolicy\.rules\[\d+\]", "specifying both"),
        "P6": (r"spec\.podFailurePolicy\.rules\[\d+\]", "specifying one of"),
        "P7 none": (r".*\.onExitCodes\.operator", "Required value"),
        "P7 unknown": (r".*\.onExitCodes\.operator", "Unsupported value"),
        "P8": (r".*\.containerName", "must be one of the container"),
        "P9 empty": (r".*\.onExitCodes\.values", "at least one value is required"),
        "P9 many": (r".*\.onExitCodes\.values", "at most 255"),
        "P10": (r".*\.onExitCodes\.values\[\d+\]", "must not be 0"),
        "P11 twice": (r".*\.onExitCodes\.values\[\d+\]", "Duplicate value"),
        "P11 order": (r".*\.onExitCodes\.values", "must be ordered"),
        "P12": (r".*\.onPodConditions", "at most 20"),
        "P13": (r".*\.onPodConditions\[\d+\]\.type", "name part"),
        "P14": (r".*\.onPodConditions\[\d+\]\.status", "Unsupported value"),
        "SP1": (r"spec\.successPolicy", "requires indexed completion mode"),
        "SP2 none": (r"spec\.successPolicy\.rules", "at least one rules"),
        "SP2 many": (r"spec\.successPolicy\.rules", "at most 20"),
        "SP3": (r"spec\.successPolicy\.rules\[\d+\]", "at least one of"),
        "SP4": (r".*\.succeededIndexes", "Too long"),
        "SP5": (r".*\.succeededIndexes", "error parsing succeededIndexes"),
        "SP6 negative": (r".*\.succeededCount", "greater than or equal to 0"),
        "SP6 completions": (r".*\.succeededCount", "the number of specified completions"),
        "SP6 indexes": (r".*\.succeededCount", "the number of indexes"),
        **_TEXTS,
    },
    Kind.UPDATE: {
        **{
            f"U2 {name}": (rf"spec\.{name}", "field is immutable")
            for name in (
                "selector",
                "completionMode",
                "podFailurePolicy",
                "backoffLimitPerIndex",
                "managedBy",
                "successPolicy",
            )
        },
        "U3 plain": (r"spec\.completions", "field is immutable"),
        "U3 indexed": (r"spec\.completions", "in tandem"),
        "U5": (r"spec\.template", "field is immutable"),
        "U6": (r"spec\.template\.spec", "field is immutable"),
        "U8": (r"spec\.template\.metadata\.labels\[.*", "Required value: must be '"),
        "U11": (r"metadata\.finalizers", "no new finalizers can be added"),
        "U11 time": (r"metadata\.deletionTimestamp", "field is immutable"),
    },
    Kind.STATUS: {
        **{
            f"V10 {name}": (rf"status\.{name}", "greater than or equal to 0")
            for name in ("active", "succeeded", "failed", "ready", "terminating")
        },
        "V11": (r"status\.uncounted.*\[\d\]", "must not be empty"),
        "V12": (r"status\.uncounted.*\[\d\]", "Duplicate value"),
        "V13": (r"status\.conditions", "Complete=True and Failed=true"),
        "V14": (r"status\.conditions", "Complete=True and FailureTarget=true"),
        "V15": (r"status\.completionTime", "when there is no Complete=True"),
        "V16": (r"status\.completionTime", "is required for Complete"),
        "V17": (r"status\.completionTime", "equal to or after"),
        "V18": (r"status\.conditions", "without the FailureTarget=true"),
        "V19": (r"status\.conditions", "without the SuccessCriteriaMet=true"),
        "V20": (r"status\.active", "active>0"),
        "V21": (r"status\.startTime", "is required for finished"),
        "V22": (r"status\.uncountedTerminatedPods", "must be empty"),
        "V23": (r"status\.completedIndexes", "error parsing"),
        "V24": (r"status\.failedIndexes", "error parsing"),
        "V25": (r"status\.completedIndexes", "when non-indexed"),
        "V26": (r"status\.failedIndexes", "when backoffLimitPerIndex is null"),
        "V27": (r"status\.failedIndexes", "overlap"),
        "V28": (r"status\.terminating", "terminating>0"),
        "V29": (r"status\.ready", "more ready pods"),
        "V30": (r"status\.conditions", "SuccessCriteriaMet=True and Failed=true"),
        "V31": (r"status\.conditions", "SuccessCriteriaMet=True and FailureTarget=true"),
        "V32": (r"status\.conditions", "for Job with SuccessPolicy"),
        "V33": (r"status\.conditions", "disable the terminal"),
        "V34": (r"status\.failed", "cannot decrease"),
        "V35": (r"status\.succeeded", "cannot decrease"),
        "V36": (r"status\.completionTime", "field is immutable"),
        "V37": (r"status\.startTime", "for unsuspended job"),
        "V38": (r"status\.conditions", "disable the SuccessCriteriaMet"),
        "V41": (r"metadata\..*", ""),
        **_TEXTS,
    },
}
_COMPILED = {
    kind: {name: (re.compile(field), re.compile(message)) for name, (field, message) in rules.items()}
    for kind, rules in _CAUSES.items()
}
_CHANGED: Mapping[str, tuple[str, ...]] = {
    **{
        f"U1 {name}": ("spec", name)
        for name in (
            "suspend",
            "parallelism",
            "backoffLimit",
            "activeDeadlineSeconds",
            "ttlSecondsAfterFinished",
            "manualSelector",
            "maxFailedIndexes",
            "podReplacementPolicy",
        )
    },
    "U3 accepted": ("spec", "completions"),
    "U6 accepted nodeSelector": ("spec", "template", "spec", "nodeSelector"),
    "U6 accepted tolerations": ("spec", "template", "spec", "tolerations"),
    "U6 accepted schedulingGates": ("spec", "template", "spec", "schedulingGates"),
    "U6 accepted resources": ("spec", "template", "spec", "containers"),
    "U6 accepted annotations": ("spec", "template", "metadata", "annotations"),
    "U6 accepted labels": ("spec", "template", "metadata", "labels"),
    "U7 accepted": ("spec", "template", "spec", "affinity"),
    "U8 accepted": ("spec", "template", "metadata", "name"),
    "DF11 generation": ("metadata", "generation"),
}
_WARNINGS: Mapping[str, str] = {
    "DF17 name": "metadata.name: this is used",
    "DF17 huge": "spec: In Indexed Jobs",
    "DF17 pod": "spec.template.",
}
RULES = frozenset(
    (
        *(name for rules in _CAUSES.values() for name in rules),
        *_CHANGED,
        *_WARNINGS,
        *("C32", "U4 accepted", "DF12 metadata"),
    )
)
"""Every rule that a request can meet on this version's server. V39 and V40 cannot be met: an older one's are."""


def met(case: Case, answer: Answer) -> Iterator[str]:
    """The rules that the server's answer to a case shows."""
    if answer.code == PANIC:
        yield "C32"
    for field, _, message in answer.causes:
        for name, (fields, messages) in _COMPILED[case.kind].items():
            if fields.fullmatch(field) and messages.search(message):
                yield name
    for name, start in _WARNINGS.items():
        if any(warning.startswith(start) for warning in answer.warnings):
            yield name
    if answer.is_accepted and case.kind is Kind.UPDATE:
        yield from _accepted_changes(case.start, answer.body)
    if answer.is_accepted and case.kind is Kind.STATUS and _labels(answer.body) != _labels(case.start):
        yield "DF12 metadata"


def _accepted_changes(old: Json, new: Json) -> Iterator[str]:
    changed = {name for name, path in _CHANGED.items() if find(old, path) != find(new, path)}
    yield from changed
    if find(old, ("spec", "template", "spec")) != find(new, ("spec", "template", "spec")) and "U1 suspend" in changed:
        yield "U4 accepted"


def _labels(job: Json) -> object:
    return job["metadata"].get("labels")


def table(seen: Counter[str]) -> str:
    """How often each rule was met, those never met first."""
    lines = [f"{seen[name]:7} {name}" for name in sorted(RULES, key=lambda name: (seen[name] > 0, name))]
    return "\n".join(lines)
