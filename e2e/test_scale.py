"""``e2e.scale`` simulates many Jobs, and managers that come and go; small, so that it is known to work."""

from __future__ import annotations

import pytest

from e2e.scale.__main__ import arguments
from e2e.scale.clusters import what
from e2e.test_bench import printed


async def test_two_managers_share_the_work_and_one_is_lost() -> None:
    """All of two waves end, no Job has two copies, and nothing is written for the crowd by starts and take-overs."""
    options = "--jobs 12 --workers 4 --managers 2 --slots 4 --wave 12 --idle 1 --lose killed"
    found = await printed("e2e.scale", *options.split())

    assert (found["jobs"], found["crowd_changed"]) == (12, 0)
    # Of who assigns now: what it reports, and its mark in the record of workers (S11).
    assert set(found["start_writes"]) <= {"POST events", "PATCH configmaps"}
    assert not found["start_writes_to_workers"]
    assert len(found["rss_mib"]) == 2
    for wave in ("wave", "killed"):
        assert (found[wave]["done"], found[wave]["made_twice"]) == (12, 0), wave
        assert found[wave]["status_to_management"]["n"] == 12 * 5, wave
    assert found["wave"]["worker_requests_per_job"] == 2
    assert found["killed"]["workers"] >= 2


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (("GET", "/api/v1/namespaces/kube-system"), "GET namespaces"),
        (("POST", "/api/v1/namespaces/a/secrets"), "POST secrets"),
        (("PATCH", "/apis/batch/v1/namespaces/a/jobs/b/status"), "PATCH jobs/status"),
        (("GET", "/apis/batch/v1/jobs", "watch=1&limit=5"), "WATCH jobs"),
        (("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"), "PUT leases"),
        (("GET", "/version"), "GET /version"),
    ],
)
def test_requests_are_counted_by_what_they_ask(request_line: tuple[str, ...], expected: str) -> None:
    assert what(*request_line) == expected


def test_a_crowd_has_a_job_for_each_worker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--jobs", "3", "--workers", "4"])
    assert "--jobs 3: there is one for each of 4 workers at least" in capsys.readouterr().err
