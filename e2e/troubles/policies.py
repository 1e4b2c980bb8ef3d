"""Rules of a cluster's own that refuse what is done to Jobs in one namespace: ValidatingAdmissionPolicies."""

from __future__ import annotations

from dataclasses import dataclass

from e2e.controlplane.client import Client, Json, StatusError
from e2e.jobs import until

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_POLICIES, _BINDINGS = (f"{_ADMISSION}/validatingadmissionpolic{plural}" for plural in ("ies", "ybindings"))


@dataclass(frozen=True, slots=True)
class Rule:
    """What has to be so of a Job that is changed, or otherwise handled."""

    expression: str
    message: str
    resource: str = "jobs"
    group: str = "batch"
    operation: str = "UPDATE"

    async def enforce(self, client: Client, namespace: str) -> None:
        """From some moment on, in this namespace; the policy has its name."""
        here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        handled = {"operations": [self.operation], "resources": [self.resource]}
        rules = [{"apiGroups": [self.group], "apiVersions": ["*"], **handled}]
        match = {"resourceRules": rules, "namespaceSelector": here}
        rule = {"expression": self.expression, "message": self.message}
        spec = {"failurePolicy": "Fail", "matchConstraints": match, "validations": [rule]}
        name = {"metadata": {"name": namespace}}
        await client.create(_POLICIES, {**name, "spec": spec})
        binding = {"policyName": namespace, "validationActions": ["Deny"]}
        await client.create(_BINDINGS, {**name, "spec": binding})

    async def lift(self, client: Client, namespace: str) -> None:
        """Enforce it no more."""
        await client.delete(f"{_BINDINGS}/{namespace}")


async def until_refused(client: Client, path: str, change: Json | None) -> None:
    """Wait until this change of an object is refused, or its deletion: an API server hears of it after a moment."""

    async def is_refused() -> bool:
        try:
            if change is None:
                await client.call("DELETE", f"{path}?dryRun=All")
            else:
                await client.merge(f"{path}?dryRun=All", change)
        except StatusError:
            return True
        return False

    await until(is_refused)
