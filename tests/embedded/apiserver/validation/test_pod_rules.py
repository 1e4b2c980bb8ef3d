"""What the API refuses in a pod template (C31): fields and the end of each message, in the server's order.

The full sentences are compared with a real server by ``e2e/api_differential``.
"""

from __future__ import annotations

import pytest

from mirror.embedded.apiserver.validation.jobs import check_create
from tests.embedded.apiserver.validation.jobs import Json, created, job

POD = "spec.template.spec"
MAIN = f"{POD}.containers[0]"
IMMEDIATELY: Json = {"exec": {"command": ["true"]}}
MANY_TYPES = "may not specify more than 1 volume type"

CONTAINERS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "no name": ({"name": ""}, [("name", "Required value")]),
    "a bad name": ({"name": "a.b"}, [("name", "must not contain dots")]),
    "a long name": ({"name": "a" * 64}, [("name", "must be no more than 63 characters")]),
    "no image": ({"image": ""}, [("image", "Required value")]),
    "an unknown message policy": (
        {"terminationMessagePolicy": "Odd"},
        [("terminationMessagePolicy", '"File", "FallbackToLogsOnError"')],
    ),
    "an unknown pull policy": (
        {"imagePullPolicy": "Odd"},
        [("imagePullPolicy", '"Always", "IfNotPresent", "Never"')],
    ),
    "ports": (
        {
            "ports": [
                {"containerPort": 0, "name": "-"},
                {"containerPort": 70000, "hostPort": -1, "protocol": "ICMP"},
                {"containerPort": 1, "name": "web", "hostPort": 5},
                {"containerPort": 2, "name": "web", "hostPort": 5},
            ]
        },
        [
            ("ports[0].name", "must contain at least one letter (a-z)"),
            ("ports[0].name", "must not begin or end with a hyphen"),
            ("ports[0].containerPort", "Required value"),
            ("ports[1].containerPort", "must be between 1 and 65535, inclusive"),
            ("ports[1].hostPort", "must be between 1 and 65535, inclusive"),
            ("ports[1].protocol", '"SCTP", "TCP", "UDP"'),
            ("ports[3].name", 'Duplicate value: "web"'),
            ("ports[3].hostPort", 'Duplicate value: "TCP//5"'),
        ],
    ),
    "names of variables": (
        {"env": [{"name": ""}, {"name": "a=b"}, {"name": "a b"}, {"name": "ü"}]},
        [
            ("env[0].name", "Required value"),
            ("env[1].name", "printable ASCII characters other than '='"),
            ("env[3].name", "printable ASCII characters other than '='"),
        ],
    ),
    "values from elsewhere": (
        {
            "env": [
                {"name": "A", "valueFrom": {}},
                {"name": "B", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.odd"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
                {"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}},
                {"name": "F", "valueFrom": {"configMapKeyRef": {"name": "c", "key": ".."}}},
                {"name": "G", "valueFrom": {"secretKeyRef": {"name": "s"}}},
                {"name": "H", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}},
                {"name": "I", "valueFrom": {"resourceFieldRef": {"resource": "odd"}}},
            ]
        },
        [
            ("env[0].valueFrom", "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"),
            ("env[1].valueFrom", "may not be specified when `value` is not empty"),
            ("env[2].valueFrom.fieldRef.fieldPath", "field label not supported: metadata.odd"),
            ("env[3].valueFrom.fieldRef.fieldPath", '"status.podIP", "status.podIPs"'),
            ("env[4].valueFrom.fieldRef", "[A-Za-z0-9]')"),
            ("env[5].valueFrom.configMapKeyRef.key", "must not be '..'"),
            ("env[6].valueFrom.secretKeyRef.key", "Required value"),
            ("env[7].valueFrom.resourceFieldRef.divisor", "values 1m and 1 are supported with the cpu resource"),
            ("env[8].valueFrom.resourceFieldRef.resource", '"requests.ephemeral-storage", "requests.memory"'),
        ],
    ),
    "whole sources": (
        {
            "envFrom": [
                {},
                {"prefix": "=", "configMapRef": {}},
                {"secretRef": {"name": "A"}, "configMapRef": {"name": "a"}},
            ]
        },
        [
            ("envFrom", "must specify one of: `configMapRef` or `secretRef`"),
            ("envFrom[1].prefix", "printable ASCII characters other than '='"),
            ("envFrom[1].configMapRef.name", "Required value"),
            ("envFrom[2].secretRef.name", "[a-z0-9])?)*')"),
            ("envFrom", "may not have more than one field specified at a time"),
        ],
    ),
    "mounts": (
        {
            "volumeMounts": [
                {"name": "none", "mountPath": "/a"},
                {"name": "data", "mountPath": "/a", "subPath": "/x/../y"},
                {"name": "data", "mountPath": "", "mountPropagation": "Bidirectional"},
                {"name": "data", "mountPath": "/b", "recursiveReadOnly": "Enabled"},
            ]
        },
        [
            ("volumeMounts[0].name", 'Not found: "none"'),
            ("volumeMounts[1].mountPath", "must be unique"),
            ("volumeMounts.subPath", "must be a relative path"),
            ("volumeMounts.subPath", "must not contain '..'"),
            ("volumeMounts[2].mountPath", "Required value"),
            ("volumeMounts.mountPropagation", "available only to privileged containers"),
            ("volumeMounts.recursiveReadOnly", "may only be specified when readOnly is true"),
        ],
    ),
    "devices": (
        {"volumeDevices": [{"name": "data", "devicePath": "/../x"}, {"name": "none", "devicePath": ""}]},
        [
            ("volumeDevices[0].name", "PersistentVolumeClaim or Ephemeral for block mode"),
            ("volumeDevices[0].devicePath", "can not contain backsteps ('..')"),
            ("volumeDevices[1].name", 'Not found: "none"'),
            ("volumeDevices[1].devicePath", "Required value"),
        ],
    ),
    "resources": (
        {
            "resources": {
                "limits": {"cpu": "1", "gpu": "1", "example.com/gpu": "2", "hugepages-2Mi": "3Mi"},
                "requests": {"cpu": "2", "memory": "-1", "example.com/gpu": "1500m", "a.b/c": "1"},
            }
        },
        [
            ("resources.limits[gpu]", "must be a standard resource type or fully qualified"),
            ("resources.limits[gpu]", "must be a standard resource for containers"),
            ("resources.limits[hugepages-2Mi]", "3Mi is not positive integer multiple of hugepages-2Mi"),
            ("resources.limits", "Limit must be set for non overcommitable resources"),
            ("resources.requests", "must be less than or equal to cpu limit of 1"),
            ("resources.requests[example.com/gpu]", "must be an integer"),
            ("resources.requests", "must be equal to example.com/gpu limit of 2"),
            ("resources.requests[memory]", "must be greater than or equal to 0"),
        ],
    ),
    "huge pages alone": (
        {"resources": {"limits": {"hugepages-2Mi": "4Mi"}}},
        [("resources", "HugePages require cpu or memory")],
    ),
    "claims that the pod has not": (
        {"resources": {"claims": [{"name": "x"}]}},
        [("resources.claims[0]", "must be one of the names in pod.spec.resourceClaims which is empty")],
    ),
    "resizing": (
        {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "RestartContainer"}]},
        [
            ("resizePolicy", '"cpu", "memory"'),
            ("resizePolicy", "must be 'NotRequired' when pod `restartPolicy` is 'Never'"),
        ],
    ),
    "probes": (
        {
            "livenessProbe": {"successThreshold": 2, "httpGet": {"port": "UP", "scheme": "FTP"}, **IMMEDIATELY},
            "readinessProbe": {"timeoutSeconds": -1, "terminationGracePeriodSeconds": 0, "tcpSocket": {"port": 0}},
            "startupProbe": {},
        },
        [
            ("livenessProbe.httpGet", "may not specify more than 1 handler type"),
            ("livenessProbe.successThreshold", "must be 1"),
            ("readinessProbe.tcpSocket.port", "must be between 1 and 65535, inclusive"),
            ("readinessProbe.timeoutSeconds", "must be greater than or equal to 0"),
            ("readinessProbe.terminationGracePeriodSeconds", "must be greater than 0"),
            ("readinessProbe.terminationGracePeriodSeconds", "must not be set for readinessProbes"),
            ("startupProbe", "must specify a handler type"),
        ],
    ),
    "hooks": (
        {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {"exec": {}}}},
        [
            ("lifecycle.postStart.exec.command", "Required value"),
            ("lifecycle.preStop.sleep", "must be non-negative and less than terminationGracePeriodSeconds (30)"),
        ],
    ),
    "restarts": (
        {"restartPolicy": "Odd", "restartPolicyRules": [{"action": "Odd"}]},
        [
            ("restartPolicy", '"Always", "Never", "OnFailure"'),
            ("restartPolicyRules[0].action", '"Restart", "RestartAllContainers"'),
            ("restartPolicyRules[0].exitCodes", "must be specified"),
        ],
    ),
    "security": (
        {
            "securityContext": {
                "runAsUser": -1,
                "procMount": "Unmasked",
                "privileged": True,
                "allowPrivilegeEscalation": False,
                "seccompProfile": {"type": "Localhost"},
                "appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
                "windowsOptions": {"runAsUserName": "a\\b\\c"},
            }
        },
        [
            ("securityContext.runAsUser", "must be between 0 and 2147483647, inclusive"),
            ("securityContext.procMount", "`hostUsers` must be false to use `Unmasked`"),
            ("securityContext.seccompProfile.localhostProfile", "must be set when seccomp type is Localhost"),
            ("securityContext", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"),
            ("securityContext.windowsOptions.runAsUserName", "cannot contain more than one backslash"),
            ("securityContext.appArmorProfile.localhostProfile", "can only be set when AppArmor type is Localhost"),
        ],
    ),
}

PODS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "containers of one name": (
        {
            "containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}],
            "initContainers": [{"name": "a", "image": "x"}],
        },
        [("containers[1].name", 'Duplicate value: "a"'), ("initContainers[0].name", 'Duplicate value: "a"')],
    ),
    "an init container with a probe": (
        {"initContainers": [{"name": "a", "image": "x", "livenessProbe": IMMEDIATELY}]},
        [("initContainers[0].livenessProbe", "may not be set for init containers without restartPolicy=Always")],
    ),
    "an ephemeral container": (
        {
            "ephemeralContainers": [
                {"name": "main", "image": "x ", "targetContainerName": "b", "stdin": True, "ports": [{}]}
            ]
        },
        [
            ("ephemeralContainers[0].ports[0].containerPort", "Required value"),
            ("ephemeralContainers[0].image", "must not have leading or trailing whitespace"),
            ("ephemeralContainers[0].name", 'Duplicate value: "main"'),
            ("ephemeralContainers[0].targetContainerName", 'Not found: "b"'),
            ("ephemeralContainers[0].ports", "cannot be set for an Ephemeral Container"),
            ("ephemeralContainers", "ephemeral containers not allowed in pod template"),
        ],
    ),
    "volumes": (
        {
            "volumes": [
                {"name": ""},
                {"name": "a"},
                {"name": "a"},
                {"name": "b", "emptyDir": {}, "secret": {"secretName": "s"}},
                {"name": "c", "secret": {"defaultMode": 512, "items": [{"key": "", "path": "../x"}]}},
                {"name": "d", "configMap": {}},
                {"name": "e", "hostPath": {"path": "/a/../b", "type": "Odd"}},
                {"name": "f", "persistentVolumeClaim": {}},
                {"name": "g", "nfs": {"server": "", "path": "x"}},
                {"name": "h", "downwardAPI": {"items": [{"path": "..x"}]}},
            ]
        },
        [
            ("volumes[0].name", "Required value"),
            ("volumes[2].name", 'Duplicate value: "a"'),
            ("volumes[3].secret", MANY_TYPES),
            ("volumes[4].secret.secretName", "Required value"),
            ("volumes[4].secret.defaultMode", "must be a number between 0 and 0777 (octal), both inclusive"),
            ("volumes[4].secret.items[0].key", "Required value"),
            ("volumes[4].secret.items[0].path", "must not contain '..'"),
            ("volumes[5].configMap.name", "Required value"),
            ("volumes[6].hostPath.path", "must not contain '..'"),
            ("volumes[6].hostPath.type", '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'),
            ("volumes[7].persistentVolumeClaim.claimName", "Required value"),
            ("volumes[8].nfs.server", "Required value"),
            ("volumes[8].nfs.path", "must be an absolute path"),
            ("volumes[9].downwardAPI.path", "must not start with '..'"),
            ("volumes[9].downwardAPI", "one of fieldRef and resourceFieldRef is required"),
        ],
    ),
    "a projected volume": (
        {
            "volumes": [
                {
                    "name": "a",
                    "projected": {
                        "sources": [
                            {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                            {"configMap": {"items": [{"key": "k", "path": "p"}]}},
                            {"serviceAccountToken": {"expirationSeconds": 1, "path": ""}},
                        ]
                    },
                }
            ]
        },
        [
            ("volumes[0].projected.sources[1].configMap.name", "Required value"),
            ("volumes[0].projected", "conflicting duplicate paths"),
            (
                "volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds",
                "may not specify a duration less than 10 minutes",
            ),
            ("volumes[0].projected.path", "Required value"),
        ],
    ),
    "policies and names": (
        {
            "dnsPolicy": "Odd",
            "nodeSelector": {"a": "-"},
            "serviceAccountName": "A",
            "nodeName": "A",
            "activeDeadlineSeconds": 0,
            "hostname": "a.b",
            "subdomain": "-",
            "priorityClassName": "A",
            "runtimeClassName": "A",
            "preemptionPolicy": "Odd",
        },
        [
            ("dnsPolicy", '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"'),
            ("nodeSelector", "[A-Za-z0-9])?')"),
            ("serviceAccountName", "[a-z0-9])?)*')"),
            ("nodeName", "[a-z0-9])?)*')"),
            ("activeDeadlineSeconds", "must be between 1 and 2147483647, inclusive"),
            ("hostname", "must not contain dots"),
            ("subdomain", "[a-z0-9])?')"),
            ("priorityClassName", "[a-z0-9])?)*')"),
            ("runtimeClassName", "[a-z0-9])?)*')"),
            ("preemptionPolicy", '"PreemptLowerPriority", "Never"'),
        ],
    ),
    "DNS without servers": (
        {"dnsPolicy": "None"},
        [("dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")],
    ),
    "DNS": (
        {"dnsConfig": {"nameservers": ["1.2.3", "::ffff:1.2.3.4", "01.2.3.4", "::1"], "searches": ["a_b.", ".", "-"]}},
        [
            ("dnsConfig.nameservers", "must not have more than 3 nameservers"),
            ("dnsConfig.nameservers[0]", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ("dnsConfig.nameservers[1]", "must not be an IPv4-mapped IPv6 address"),
            ("dnsConfig.nameservers[2]", "must not have leading 0s"),
            ("dnsConfig.searches[2]", "[a-z0-9])?)*')"),
        ],
    ),
    "gates": (
        {"readinessGates": [{"conditionType": "-"}], "schedulingGates": [{"name": "a"}, {"name": "a"}]},
        [
            ("readinessGates[0].conditionType", "[A-Za-z0-9]')"),
            ("schedulingGates[1]", 'Duplicate value: "a"'),
        ],
    ),
    "tolerations": (
        {
            "tolerations": [
                {"operator": "Equal"},
                {"key": "a", "operator": "Exists", "value": "x"},
                {"key": "a", "tolerationSeconds": 1, "effect": "Odd"},
                {"key": "a", "operator": "Gt", "value": "1"},
                {"key": "a", "operator": "Odd"},
            ]
        },
        [
            ("tolerations[0].operator", 'which means "match all values and all keys"'),
            ("tolerations[1].operator", "value must be empty when `operator` is 'Exists'"),
            ("tolerations[2].effect", "effect must be 'NoExecute' when `tolerationSeconds` is set"),
            ("tolerations[2].effect", '"NoSchedule", "PreferNoSchedule", "NoExecute"'),
            ("tolerations[3].operator", '"Equal", "Exists", "Lt", "Gt"'),
            ("tolerations[4].operator", '"Equal", "Exists"'),
        ],
    ),
    "affinity to nodes": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In"},
                                    {"key": "a", "operator": "Exists", "values": ["x"]},
                                    {"key": "a", "operator": "Gt", "values": ["1", "-"]},
                                    {"key": "a", "operator": "Odd"},
                                ],
                                "matchFields": [{"key": "metadata.uid", "operator": "In", "values": []}],
                            }
                        ]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}],
                }
            }
        },
        [
            ("[0].matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"),
            ("[0].matchExpressions[1].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
            ("[0].matchExpressions[2].values", "must be specified single value when `operator` is 'Lt' or 'Gt'"),
            ("[0].matchExpressions[2].values[1]", "[A-Za-z0-9])?')"),
            ("[0].matchExpressions[3].operator", "not a valid selector operator"),
            ("[0].matchFields[0].values", "when `operator` is 'In' or 'NotIn' for node field selector"),
            ("[0].matchFields[0].key", "not a valid field selector key"),
            ("[0].weight", "must be in the range 1-100"),
        ],
    ),
    "affinity to pods": (
        {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "", "namespaces": ["A"], "matchLabelKeys": ["a"]}
                    ]
                }
            }
        },
        [
            ("[0].namespace", "[a-z0-9])?')"),
            ("[0].matchLabelKeys", "must not be specified when labelSelector is not set"),
            ("[0].topologyKey", "can not be empty"),
            ("[0].topologyKey", "name part must be non-empty"),
            ("[0].topologyKey", "[A-Za-z0-9]')"),
        ],
    ),
    "spread": (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0},
                {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Odd"},
                {"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "Odd"},
            ]
        },
        [
            ("topologySpreadConstraints[0].maxSkew", "must be greater than zero"),
            (
                "topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
                'Duplicate value: "{a, ScheduleAnyway}"',
            ),
            ("topologySpreadConstraints[0].minDomains", "must be greater than zero"),
            (
                "topologySpreadConstraints[0].minDomains",
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
            ),
            ("topologySpreadConstraints[1].nodeTaintsPolicy", '"Honor", "Ignore"'),
            ("topologySpreadConstraints[2].topologyKey", "can not be empty"),
            ("topologySpreadConstraints[2].whenUnsatisfiable", '"DoNotSchedule", "ScheduleAnyway"'),
        ],
    ),
    "security": (
        {
            "hostNetwork": True,
            "hostPID": True,
            "hostUsers": False,
            "shareProcessNamespace": True,
            "securityContext": {
                "fsGroup": -1,
                "supplementalGroups": [-1],
                "fsGroupChangePolicy": "Odd",
                "sysctls": [{"name": "net.x"}, {"name": "A"}],
                "seLinuxChangePolicy": "MountOption",
            },
        },
        [
            ("securityContext.fsGroup", "must be between 0 and 2147483647, inclusive"),
            ("securityContext.supplementalGroups[0]", "must be between 0 and 2147483647, inclusive"),
            ("securityContext.shareProcessNamespace", "ShareProcessNamespace and HostPID cannot both be enabled"),
            ("securityContext.sysctls[0].name", "may not be specified when 'hostNetwork' is true"),
            ("securityContext.sysctls[1].name", "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"),
            ("securityContext.fsGroupChangePolicy", '"Always", "OnRootMismatch"'),
            ("securityContext.seLinuxChangePolicy", 'supported values: "Recursive"'),
            ("hostNetwork", "when `hostUsers` is false"),
            ("HostPID", "when `hostUsers` is false"),
        ],
    ),
    "Windows": (
        {
            "os": {"name": "windows"},
            "hostIPC": True,
            "securityContext": {"runAsUser": 1, "windowsOptions": {"hostProcess": True}},
        },
        [
            ("hostNetwork", "hostNetwork must be true if pod contains any hostProcess containers"),
            ("hostIPC", "cannot be set for a windows pod"),
            ("securityContext.runAsUser", "cannot be set for a windows pod"),
        ],
    ),
    "Linux": (
        {"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}},
        [("securityContext.windowsOptions", "windows options cannot be set for a linux pod")],
    ),
    "another system": ({"os": {"name": "plan9"}}, [("os", '"linux", "windows"')]),
    "hosts": (
        {"hostAliases": [{"ip": "x", "hostnames": ["A"]}]},
        [
            ("hostAliases[0].ip", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ("hostAliases[0].hostnames[0]", "[a-z0-9])?)*')"),
        ],
    ),
    "claims": (
        {"resourceClaims": [{"name": "a"}, {"name": "a", "resourceClaimName": "A"}]},
        [
            ("resourceClaims[0]", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            ("resourceClaims[1].name", 'Duplicate value: "a"'),
            ("resourceClaims[1].resourceClaimName", "[a-z0-9])?)*')"),
        ],
    ),
    "resources of the pod": (
        {
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "gpu": "1"}},
            "containers": [
                {"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
                {"name": "b", "image": "x", "resources": {"requests": {"cpu": "500m"}}},
            ],
        },
        [
            ("resources.limits[gpu]", "must be a standard resource type or fully qualified"),
            ("resources.requests[cpu]", "must be greater than or equal to aggregate container requests of 1500m"),
            ("resources.containers[0][cpu].limits", "must be less than or equal to pod limits of 1"),
        ],
    ),
    "ports of the node": (
        {
            "hostNetwork": True,
            "containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 1, "hostPort": 2}]}],
        },
        [("containers[0].ports[0].hostPort", "must match `containerPort` when `hostNetwork` is true")],
    ),
}


@pytest.mark.parametrize(("main", "expected"), CONTAINERS.values(), ids=CONTAINERS)
def test_what_is_refused_in_a_container(main: Json, expected: list[tuple[str, str]]) -> None:
    request = job(pod={"volumes": [{"name": "data"}]}, main=main)

    _expect(request, [(f"{MAIN}.{field}", end) for field, end in expected])


@pytest.mark.parametrize(("pod", "expected"), PODS.values(), ids=PODS)
def test_what_is_refused_in_a_pod(pod: Json, expected: list[tuple[str, str]]) -> None:
    _expect(job(pod=pod), expected)


def test_a_sidecar_may_have_what_a_main_container_has() -> None:
    sidecar = {"name": "a", "image": "x", "restartPolicy": "Always", "livenessProbe": IMMEDIATELY}

    assert check_create(created(job(pod={"initContainers": [sidecar]}))) == []


def test_the_cost_of_deletion_is_a_number() -> None:
    request = job()
    request["spec"]["template"]["metadata"] = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}}

    _expect(
        request,
        [("spec.template.annotations[controller.kubernetes.io/pod-deletion-cost]", "must be a 32bit integer")],
    )


def _expect(request: Json, expected: list[tuple[str, str]]) -> None:
    found = check_create(created(request))

    shown = [(one.field, one.message) for one in found]
    assert len(expected) == len(found), shown
    for violation, (field, end) in zip(found, expected, strict=True):
        assert violation.field.endswith(field), shown
        assert violation.message.endswith(end), shown
