"""Feature gates of the API: which designs of batch/v1 the server knows (DF21, U9, RN4).

All are on, as in the version that we equal; off they emulate older ones.
"""

from __future__ import annotations

import msgspec


class ApiGates(msgspec.Struct, frozen=True):
    """Which fields and rules there are. The names are those of Kubernetes in our spelling."""

    job_managed_by: bool = True
    job_pod_replacement_policy: bool = True
    job_success_policy: bool = True
    job_backoff_limit_per_index: bool = True
    mutable_scheduling_directives_for_suspended_jobs: bool = True
    mutable_pod_resources_for_suspended_jobs: bool = True
    pod_failure_policy_name: bool = True
    """KEP-4443, which no Kubernetes has: rules of a podFailurePolicy have names."""


ALL_ON = ApiGates()
