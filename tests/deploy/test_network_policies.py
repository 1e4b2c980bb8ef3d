"""The shipped NetworkPolicies let in whom docs/security.md names, and nobody else (D29).

The chart gives the same objects (``e2e/test_manifests``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

SHIPPED = Path(__file__).parents[2] / "deploy/kustomize"
EVERYBODY = None


def labelled(name: str) -> list[dict[str, Any]]:
    """Pods of the namespaces with this label."""
    return [{"namespaceSelector": {"matchLabels": {f"jobmirror.io/{name}": "true"}}}]


LET_IN = {
    "base": {8080: labelled("metrics")},
    "components/page": {8081: labelled("page")},
    "components/webhook": {8443: EVERYBODY},
    "components/access": {8443: EVERYBODY},
}
"""By port of the pod; of everybody each is asked who they are (docs/security.md)."""
LET_OUT = "components/sharding"


@pytest.mark.parametrize("folder", LET_IN)
def test_each_port_is_open_to_those_who_need_it(folder: str) -> None:
    """Kubelets' probes come from the node, which no policy keeps out."""
    policy = yaml.safe_load((SHIPPED / folder / "network-policy.yaml").read_text())["spec"]

    assert "Ingress" in policy["policyTypes"]
    assert policy["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "jobmirror"}}
    opened = {port["port"]: rule.get("from") for rule in policy["ingress"] for port in rule["ports"]}
    assert opened == LET_IN[folder]


def test_managers_reach_each_other_where_several_work_at_once() -> None:
    """And nothing else by this policy; whoever reaches the port is let in by another one."""
    policy = yaml.safe_load((SHIPPED / LET_OUT / "network-policy.yaml").read_text())["spec"]

    ours = {"matchLabels": {"app.kubernetes.io/name": "jobmirror"}}
    assert (policy["policyTypes"], policy["podSelector"]) == (["Egress"], ours)
    assert policy["egress"] == [{"to": [{"podSelector": ours}], "ports": [{"protocol": "TCP", "port": 8443}]}]


def test_no_policy_is_left_out() -> None:
    found = {str(path.parent.relative_to(SHIPPED)) for path in SHIPPED.rglob("*network-polic*.yaml")}
    assert found == {*LET_IN, LET_OUT}
