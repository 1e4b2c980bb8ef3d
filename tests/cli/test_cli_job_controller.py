"""``mirror job-controller``: what it takes, and what it refuses before it does anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mirror.cli.main import main


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["job-controller", *arguments], env=environment)


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["--qps=-1"], {}, "--qps: expected a number ≥ 0 (0: unlimited)"),
        (["--qps=nan"], {}, "--qps: expected a number ≥ 0"),
        (["--burst=0"], {}, "--burst: expected a whole number ≥ 1"),
        (["--listen=8080"], {}, "--listen: expected HOST:PORT"),
        (["--lease-namespace=A"], {}, "--lease-namespace: expected the name of a namespace"),
        (["--namespace=a", "--namespace=B"], {}, "--namespace: expected the name of a namespace"),
        (["--feature-gates=Fly=true"], {}, "--feature-gates: unknown gate 'Fly' (known: GenericWorkload, "),
        (["--feature-gates=JobManagedBy"], {}, "--feature-gates: JobManagedBy must be true or false"),
        ([], {"JOB_FEATURE_GATES": "Fly=true"}, "JOB_FEATURE_GATES: unknown gate 'Fly'"),
        (
            ["--feature-gates=WorkloadWithJob=true"],
            {},
            "feature gates: WorkloadWithJob is on and needs GenericWorkload",
        ),
        ([], {"JOB_BATCH_PERIOD_SECONDS": "1s"}, "JOB_BATCH_PERIOD_SECONDS: expected seconds between 0 and 86400"),
        ([], {"JOB_MAX_UNCOUNTED_PODS": "many"}, "JOB_MAX_UNCOUNTED_PODS: expected a whole number"),
    ],
)
def test_what_cannot_be_used_ends_with_two(arguments: list[str], environment: dict[str, str], told: str) -> None:
    """One line on stderr, which names the option or the variable; nothing is started."""
    result = invoke(*arguments, **environment)

    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mirror job-controller: {told}")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    """A line each."""
    result = invoke("--qps=-1", "--feature-gates=Fly=true", JOB_FEATURE_GATES="Swim=true", JOB_API_BACKOFF_SECONDS="x")

    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == [
        "--qps",
        "JOB_API_BACKOFF_SECONDS",
        "JOB_FEATURE_GATES",
        "--feature-gates",
    ]


def test_a_kubeconfig_that_leads_nowhere_ends_with_one(tmp_path: Path) -> None:
    """The reason is one line."""
    result = invoke(f"--kubeconfig={tmp_path / 'none'}", "--listen=127.0.0.1:0")

    assert result.exit_code == 1
    assert result.stderr == f"Error: --kubeconfig {tmp_path / 'none'}: no such file\n"


@pytest.mark.slow
def test_outside_a_cluster_a_kubeconfig_is_needed() -> None:
    """Without one it is the service account of our pod."""
    result = invoke("--listen=127.0.0.1:0", KUBERNETES_SERVICE_HOST="")

    assert result.exit_code == 1
    assert "we do not run in a pod with a service account" in result.stderr
