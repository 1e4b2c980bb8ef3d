"""Constants from the environment and feature gates from flags (K2, K3; issue 4)."""

import pytest

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller import constants
from mirror.jobcontroller.constants import GATES, InvalidConstant, read_constants, read_gates
from mirror.jobcontroller.decide.values import Constants
from mirror.settings.feature_gates import UPSTREAM_GATES
from mirror.settings.rules import FEATURE_GATES


def test_what_is_not_said_is_upstreams() -> None:
    """An empty environment, and empty variables, leave upstream's constants; all gates are on that are not alpha."""
    assert read_constants({}) == Constants() == read_constants({"JOB_BATCH_PERIOD_SECONDS": " "})
    assert Constants(1.0, 1.0, 60.0, 10.0, 600.0, 500, 500) == Constants()
    assert read_gates("") == FeatureGates()
    off = {name for name, field in constants.GATES.items() if not getattr(FeatureGates(), field)}
    assert off == {"GenericWorkload", "WorkloadWithJob"}


def test_every_constant_can_be_said() -> None:
    """Seconds may be fractions; the batch period may be none at all."""
    environment = {
        "JOB_BATCH_PERIOD_SECONDS": "0",
        "JOB_API_BACKOFF_SECONDS": "0.25",
        "JOB_API_BACKOFF_MAX_SECONDS": "2.5",
        "JOB_POD_FAILURE_BACKOFF_SECONDS": ".5",
        "JOB_MAX_POD_FAILURE_BACKOFF_SECONDS": "3",
        "JOB_MAX_UNCOUNTED_PODS": "7",
        "JOB_MAX_POD_CREATE_DELETE_PER_SYNC": "9",
    }
    assert set(environment) == set(constants.ENVIRONMENT)
    assert set(constants.ENVIRONMENT.values()) == set(Constants.__struct_fields__)

    assert read_constants(environment) == Constants(0.0, 0.25, 2.5, 0.5, 3.0, 7, 9)


@pytest.mark.parametrize(
    ("variable", "text", "told"),
    [
        ("JOB_BATCH_PERIOD_SECONDS", "1s", "expected seconds between 0 and 86400, such as 1 or 0.25, got '1s'"),
        ("JOB_BATCH_PERIOD_SECONDS", "-1", "expected seconds between 0 and 86400"),
        ("JOB_API_BACKOFF_SECONDS", "0", "expected seconds between 0.001 and 86400"),
        ("JOB_API_BACKOFF_SECONDS", "nan", "expected seconds"),
        ("JOB_API_BACKOFF_SECONDS", "inf", "expected seconds"),
        ("JOB_POD_FAILURE_BACKOFF_SECONDS", "86401", "expected seconds"),
        ("JOB_MAX_UNCOUNTED_PODS", "0", "expected a whole number between 1 and 100000, such as 500, got '0'"),
        ("JOB_MAX_UNCOUNTED_PODS", "1.5", "expected a whole number"),
        ("JOB_MAX_POD_CREATE_DELETE_PER_SYNC", "9" * 30, "expected a whole number"),
        ("JOB_API_BACKOFF_SECONDS", "61", "must not be more than JOB_API_BACKOFF_MAX_SECONDS (60)"),
        ("JOB_MAX_POD_FAILURE_BACKOFF_SECONDS", "5", "must not be less than JOB_POD_FAILURE_BACKOFF_SECONDS (10)"),
    ],
)
def test_a_bad_constant_is_refused_by_its_name(variable: str, text: str, told: str) -> None:
    """The variable comes first, then what it should be."""
    with pytest.raises(InvalidConstant) as caught:
        read_constants({variable: text})

    assert str(caught.value).startswith(f"{variable}: {told}")


def test_all_bad_constants_are_named_at_once() -> None:
    """One line per variable."""
    with pytest.raises(InvalidConstant) as caught:
        read_constants({"JOB_BATCH_PERIOD_SECONDS": "x", "JOB_MAX_UNCOUNTED_PODS": "y"})

    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "JOB_BATCH_PERIOD_SECONDS",
        "JOB_MAX_UNCOUNTED_PODS",
    ]


def test_gates_are_named_as_kubernetes_names_them() -> None:
    """The same names in flags, in the environment and in the settings file."""
    assert set(constants.GATES) == set(FEATURE_GATES)
    assert "JobBackoffLimitPerIndex" in constants.GATES


def test_gates_are_switched_one_by_one() -> None:
    """Later ones win; spaces do not matter; what is said of others stays."""
    found = read_gates(
        " JobManagedBy=false, JobSuccessPolicy=False ,JobManagedBy=true", FeatureGates(pod_failure_policy_name=False)
    )

    assert found == FeatureGates(job_success_policy=False, pod_failure_policy_name=False)


def test_gang_scheduling_needs_the_api() -> None:
    """As upstream: the gate that it depends on has to be on, too; which of them came first does not matter."""
    constants.check_gates(read_gates("WorkloadWithJob=true,GenericWorkload=true"))
    constants.check_gates(read_gates("GenericWorkload=true"))
    with pytest.raises(InvalidConstant) as caught:
        constants.check_gates(read_gates("WorkloadWithJob=true"))

    told = "feature gates: WorkloadWithJob is on and needs GenericWorkload, which is off; set GenericWorkload=true, too"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("StaleControllerConsistencyJob=true", "it is the default"),
        ("StaleControllerConsistencyJob=false", "it has no effect here"),
        ("GangScheduling=false", "it is the default"),
        ("SidecarContainers=true", "it is the default"),
        ("AtomicFIFO=false", "it has no effect here"),
        ("AllAlpha=false", "it is the default"),
        ("AllBeta=true", "it has no effect here"),
    ],
)
def test_a_gate_of_upstreams_that_may_be_ignored_is_a_warning(text: str, told: str) -> None:
    """At its default, or without an effect on what Jobs do; what else is given counts."""
    lines: list[str] = []
    found = read_gates(f"{text},JobManagedBy=false", what="JOB_FEATURE_GATES", warn=lines.append)

    assert found == FeatureGates(job_managed_by=False)
    (line,) = lines
    assert line.startswith(f"JOB_FEATURE_GATES: {text} is ignored, {told}")


@pytest.mark.parametrize("text", ["SidecarContainers=false", "AllAlpha=true", "AllBeta=false"])
def test_a_gate_of_upstreams_that_changes_jobs_is_refused(text: str) -> None:
    """Ignoring it would run Jobs otherwise than the operator has asked for."""
    with pytest.raises(InvalidConstant, match=f"^--feature-gates: {text} is not supported"):
        read_gates(text, warn=lambda line: pytest.fail(line))


def test_a_gate_of_upstreams_without_a_value_is_refused() -> None:
    """As for any other."""
    with pytest.raises(InvalidConstant, match="AllAlpha must be true or false"):
        read_gates("AllAlpha")


def test_no_gate_is_both_a_switch_and_ignored() -> None:
    """Whoever implements one takes it out of the table."""
    assert not UPSTREAM_GATES.keys() & GATES.keys()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "JobManagedBye=false",
            "--feature-gates: unknown gate 'JobManagedBye' (did you mean JobManagedBy? known: Gene",
        ),
        ("Elastic=true", "--feature-gates: unknown gate 'Elastic' (known: GenericWorkload, JobBackoffLimitPerIndex, "),
        ("JobManagedBy", "--feature-gates: JobManagedBy must be true or false, as in JobManagedBy=false, got ''"),
        ("JobManagedBy=maybe", "got 'maybe'"),
    ],
)
def test_a_bad_gate_is_refused(text: str, told: str) -> None:
    """Which one, and what there is."""
    with pytest.raises(InvalidConstant) as caught:
        read_gates(text)

    assert told in str(caught.value)
