"""Values in causes: with the names, the order and the absent things of the server's own types (E5)."""

from __future__ import annotations

import json

import pytest

from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.printing import text


def test_a_pod_prints_as_the_server_holds_it() -> None:
    """Its host namespaces are in its security context; there is no second name for its account."""
    spec = canonical({"hostNetwork": True, "serviceAccount": "x", "securityContext": {"fsGroup": 5}}, "PodSpec")
    printed = json.loads(text(spec, "PodSpec"))

    assert list(printed)[:3] == ["Volumes", "InitContainers", "Containers"]
    assert list(printed)[-2:] == ["HostnameOverride", "SchedulingGroup"]
    assert not {"HostNetwork", "ServiceAccount"} & printed.keys()
    assert list(printed["SecurityContext"])[:6] == [
        "HostNetwork",
        "HostPID",
        "HostIPC",
        "ShareProcessNamespace",
        "HostUsers",
        "SELinuxOptions",
    ]
    assert (printed["SecurityContext"]["HostNetwork"], printed["SecurityContext"]["FSGroup"]) == (True, 5)


@pytest.mark.parametrize(
    ("struct", "value", "printed"),
    [
        ("HostAlias", {"ip": "x"}, '{"IP":"x","Hostnames":null}'),
        ("GlusterfsVolumeSource", {"endpoints": "e"}, '{"EndpointsName":"e","Path":"","ReadOnly":false}'),
        ("Lifecycle", {}, '{"PostStart":null,"PreStop":null,"StopSignal":null}'),
        ("LabelSelector", {"matchLabels": {"b": "1", "a": "<"}}, '{"matchLabels":{"a":"\\u003c","b":"1"}}'),
        ("PodTemplateSpec", {"metadata": {"labels": {"a": "b"}}, "spec": None}, None),
    ],
)
def test_a_struct_prints(struct: str, value: dict[str, object], printed: str | None) -> None:
    """Names of the server, fields of the API machinery as JSON."""
    found = text(canonical(value, struct), struct)

    if printed is None:
        assert found.startswith('{"labels":{"a":"b"},"Spec":{"Volumes":null,')
    else:
        assert found == printed
