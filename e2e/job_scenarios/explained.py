"""Where ours differs from upstream on purpose, each with its reason; ``docs/job-controller.md`` tells it to people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explained:
    """Differences of one scenario that are meant. Every line that differs must contain one of its side's texts."""

    because: str
    upstream: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()


_FINISH_WHILE_SUSPENDED = (
    "Q13: upstream clears startTime when a Job is suspended, and cannot store the end of a Job without one: it retries "
    "until the Job is resumed. Ours sets startTime again with the interim condition, so the Job ends at once."
)
_ONE_ENTRY_PER_TYPE = (
    "Q14: an interim condition that somebody wrote as False is replaced where upstream appends a second entry of the "
    "same type, which a strategic-merge patch of the status could then no longer tell apart."
)

EXPLAINED: dict[str, Explained] = {
    "a-job-of-many-pods": Explained(
        "N3: upstream loses the event Completed of a Job with 25 Normal events or more, since its event client drops "
        "what exceeds a bucket of 25. Ours always tells how a Job ended.",
        ours=("Normal Completed ×1",),
    ),
    "the-limit-is-lowered-while-suspended": Explained(
        _FINISH_WHILE_SUSPENDED,
        upstream=("refused 422", "FailureTarget=True"),
        ours=("FailureTarget=True",),
    ),
    "a-suspended-job-shrinks-to-what-is-done": Explained(
        _FINISH_WHILE_SUSPENDED,
        upstream=("refused 422", "SuccessCriteriaMet=True"),
        ours=("SuccessCriteriaMet=True",),
    ),
    "a-failure-target-that-is-false": Explained(
        _ONE_ENTRY_PER_TYPE,
        upstream=("[FailureTarget=False Mine: because times=[]] [FailureTarget=True",),
        ours=("[FailureTarget=True",),
    ),
    "success-criteria-that-are-not-met": Explained(
        _ONE_ENTRY_PER_TYPE,
        upstream=("[SuccessCriteriaMet=False Mine: because times=[]] [SuccessCriteriaMet=True",),
        ours=("[SuccessCriteriaMet=True",),
    ),
    "a-gang-with-too-long-a-name": Explained(
        "KEP-5547: upstream makes the name of the PodGroup template longer than the API accepts, so its Job never "
        "runs. Ours cuts the Job's part.",
        upstream=("create workloads refused 422", "j generation=1"),
        ours=(
            "create ",
            "  ",
            "status active=2",
            "j generation=1 active=2",
            " Pending ",
            "Normal SuccessfulCreate",
            "Normal WorkloadCreated",
        ),
    ),
    "a-quota-allows-no-workload": Explained(
        "KEP-5547: nothing but upstream's log says that a Workload could not be created. Ours has the event of 1.37.",
        ours=("Warning FailedWorkloadCreate on Job/job",),
    ),
    "a-pod-of-a-finished-job": Explained(
        "Q24: upstream leaves the finalizer on a pod that comes after its Job's end until the pod is deleted. Ours "
        "takes it off at once, as it does with pods that a crash left, so that a restart changes nothing.",
        upstream=("stray",),
        ours=("stray",),
    ),
    "a-pod-that-was-counted-as-failed-succeeds": Explained(
        "Q16: upstream counts a pod's success towards completions though it is already down as failed, and so stores "
        "Complete with succeeded=0. Ours lets it stay failed, and runs another pod.",
        upstream=("SuccessCriteriaMet=True", "Normal Completed"),
        ours=(
            "create p2",
            "  ",
            "status active=1 failed=1",
            "job generation=1 active=1 failed=1",
            "p2 Pending",
            "Created pod: p2",
        ),
    ),
}
