"""Feature gates of Kubernetes that concern Jobs: one set for the API and the controller.

Those that are on by default are locked on in the version that we equal, or on there; off they emulate older ones (DF21,
U9, RN4).
"""

from __future__ import annotations

import msgspec


class FeatureGates(msgspec.Struct, frozen=True):
    """Which fields and rules there are; all on by default but the last two, which are alpha."""

    job_managed_by: bool = True
    job_pod_replacement_policy: bool = True
    job_success_policy: bool = True
    job_backoff_limit_per_index: bool = True
    mutable_scheduling_directives_for_suspended_jobs: bool = True
    mutable_pod_resources_for_suspended_jobs: bool = True
    pod_failure_policy_name: bool = True
    """KEP-4443, which no Kubernetes has: rules of a podFailurePolicy have names."""
    generic_workload: bool = False
    """The API server has Workloads and PodGroups. Of no effect here but that ``workload_with_job`` needs it."""
    workload_with_job: bool = False
    """Gang scheduling: Jobs that qualify get a Workload and a PodGroup."""


DEFAULT_GATES = FeatureGates()
