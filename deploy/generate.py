#!/usr/bin/env python3
"""Copies into ``deploy/`` what it shares: rights, alert rules, the dashboard, the version. Run it after changes.

    python deploy/generate.py           write
    python deploy/generate.py --check   say what differs, and end with 1 if anything does; a test does the same

Rights are written once, in ``config/rbac``; kustomize reads no file above its own folder, and Helm wants its own
expressions in them, so both get copies, each marked as such. Everything else in ``deploy/`` is written by hand, and
``e2e/test_manifests.py`` proves that the chart gives what kustomize gives. Standard library only.
"""

from __future__ import annotations

import itertools
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
TABLE = TOP / "mirror/kinds/declared/built_in.yaml"
RBAC, KUSTOMIZE, CHART = TOP / "config/rbac", TOP / "deploy/kustomize", TOP / "deploy/helm/jobmirror"
ALERTS, WEBHOOKS = TOP / "deploy/observability/alerts.yaml", TOP / "config/webhook.yaml"
FLOW_SCHEMA = TOP / "config/flow-schema.yaml"
DASHBOARD = TOP / "deploy/observability/dashboard.json"

WHEN = {
    "management": "",
    "management-tokens": ".Values.config.workers.renewTokens",
    "management-create-namespaces": '(dig "createNamespaces" false .Values.config.workers)',
    "management-priority-classes": '(dig "placement" "priorityClasses" false .Values.config)',
    "management-namespace-policies": '(dig "onLossOfNamespaces" false .Values.config.workers)',
    "management-sharding": '(gt (int (dig "sharding" "slots" 1 .Values.config)) 1)',
    "management-dependencies": '(dig "dependencies" dict .Values.config)',
    "https": '(and (include "jobmirror.https" .) (not .Values.certManager.enabled))',
    "webhook": ".Values.config.webhook.enabled",
    "access": '(or .Values.config.access.enabled (dig "page" "login" false .Values.config))',
    "job-controller": ".Values.config.jobController.enabled",
    "job-controller-gang": (
        '(and .Values.config.jobController.enabled (dig "featureGates" "WorkloadWithJob" false'
        " .Values.config.jobController))"
    ),
}
"""The files of rights on the management cluster, and when the chart has them."""

NAMESPACED = {
    "management-namespaced": ("team-a", ".Values.config.namespaces", ""),
    "webhook-namespaced": ("team-a", ".Values.config.namespaces", WHEN["webhook"]),
    "management-secret-sources": ("clusters", '(include "jobmirror.sourceNamespaces" . | fromJsonArray)', ""),
    "management-cluster-profiles": ("fleet", '(include "jobmirror.profileNamespaces" . | fromJsonArray)', ""),
}
"""The files of rights in chosen namespaces: the one that they name, all of them in the chart, and when it has them."""

UNLESS = {
    "jobmirror-manager": ".Values.config.namespaces",
    "jobmirror-webhook": ".Values.config.namespaces",
    "jobmirror-webhook-authority": ".Values.certManager.enabled",
    "jobmirror-manager-copies-configmaps": '(not (dig "dependencies" "configMaps" false .Values.config))',
    "jobmirror-manager-copies-secrets": '(not (dig "dependencies" "secrets" false .Values.config))',
    "jobmirror-manager-copies-serviceaccounts": '(not (dig "dependencies" "serviceAccounts" false .Values.config))',
}
"""ClusterRoles that something else takes the place of (namespaced Roles, or cert-manager), or that are not needed."""

COPIES = {
    "management": "base/rbac.yaml",
    "management-tokens": "base/tokens.yaml",
    "management-create-namespaces": "components/create-namespaces/rbac.yaml",
    "management-priority-classes": "components/priority-classes/rbac.yaml",
    "management-namespace-policies": "components/namespace-policies/rbac.yaml",
    "management-sharding": "components/sharding/rbac.yaml",
    "management-dependencies": "components/dependencies/rbac.yaml",
    "https": "components/own-certificates/rbac.yaml",
    "webhook": "components/webhook/rbac.yaml",
    "access": "components/access/rbac.yaml",
    "job-controller": "components/job-controller/rbac.yaml",
    "job-controller-gang": "components/job-controller-gang/rbac.yaml",
    "management-namespaced": "components/namespaced/team-a.yaml",
    "management-secret-sources": "components/secret-sources/clusters.yaml",
    "management-cluster-profiles": "components/cluster-profiles/fleet.yaml",
}
"""Where kustomize finds the same files."""


def generated() -> dict[Path, str]:
    """What the copies have to hold, by file."""
    files: dict[Path, str] = {}
    for name, place in COPIES.items():
        files[KUSTOMIZE / place] = _marked(name, _without_account(name, (RBAC / f"{name}.yaml").read_text()))
    for name, condition in WHEN.items():
        files[CHART / "templates/rights" / f"{name}.yaml"] = _template(name, condition)
    for name in NAMESPACED:
        files[CHART / f"templates/rights/{name}.yaml"] = _namespaced_template(name)
    for name in kinds():
        component = KUSTOMIZE / "components/kinds" / name
        text = (RBAC / f"kinds/management-{name}.yaml").read_text()
        files[component / "rbac.yaml"] = _marked(f"kinds/management-{name}", text)
        files[component / "kustomization.yaml"] = _kind_component(name, text)
    files[CHART / "templates/_kinds.tpl"] = _kinds_part()
    files[CHART / "templates/rights/kinds.yaml"] = _kinds_template()
    files[KUSTOMIZE / "components/webhook/configurations.yaml"] = _mark("config/webhook.yaml") + WEBHOOKS.read_text()
    files[CHART / "templates/webhook.yaml"] = _webhooks_template()
    flow_schema = _mark("config/flow-schema.yaml") + FLOW_SCHEMA.read_text()
    files[KUSTOMIZE / "components/flow-schema/flow-schema.yaml"] = flow_schema
    files[CHART / "templates/flow-schema.yaml"] = _if(".Values.flowSchema.enabled", _in_release(flow_schema))
    alerts = ALERTS.read_text()
    files[CHART / "files/alerts.yaml"] = _mark("deploy/observability/alerts.yaml") + alerts
    files[KUSTOMIZE / "components/prometheus-operator/rules.yaml"] = (
        _mark("deploy/observability/alerts.yaml")
        + _RULES
        + "".join(f"  {line}" if line.strip() else line for line in alerts.splitlines(keepends=True))
    )
    for place in (CHART / "files", KUSTOMIZE / "components/dashboard"):
        files[place / DASHBOARD.name] = DASHBOARD.read_text()
    version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    for path, pattern in _VERSIONS.items():
        files[path] = re.sub(pattern, rf"\g<1>{version}", path.read_text())
    return files


_LABELS = '  labels:\n    {{- include "jobmirror.labels" $ | nindent 4 }}\n'
_OWN_KIND = """\
# One that is not built in.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jobmirror-management-{{ $kind.name }}
rules:
- apiGroups: [{{ $kind.group }}]
  resources: [{{ $kind.plural }}]
  verbs: [get, list, watch, patch]
- apiGroups: [{{ $kind.group }}]
  resources: [{{ $kind.plural }}/status]
  verbs: [patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jobmirror-management-{{ $kind.name }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jobmirror-management-{{ $kind.name }}}
subjects:
- {kind: ServiceAccount, name: jobmirror, namespace: jobmirror-system}
"""
_INJECTED = """\
  {{- if .Values.certManager.enabled }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/jobmirror
  {{- end }}
"""
_ANNOTATED = """\
  {{- with .Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
"""
_RULES = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: jobmirror
  namespace: jobmirror-system
spec:
"""
_VERSIONS: Mapping[Path, str] = {
    CHART / "Chart.yaml": r"(?m)^((?:appV|v)ersion: ).+$",
    KUSTOMIZE / "base/kustomization.yaml": r"(newTag: ).+",
    TOP / "deploy/image/Dockerfile": r"(--tag jobmirror:)\S+",
}


def main(arguments: list[str]) -> int:
    """Write or check; gives the exit code."""
    differing = [(path, text) for path, text in generated().items() if not path.exists() or path.read_text() != text]
    for path, text in differing:
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(path.relative_to(TOP))
    return int(bool(differing) and "--check" in arguments)


def _mark(source: str) -> str:
    return f"# Copied from {source} by deploy/generate.py: change it there.\n"


def _marked(name: str, text: str) -> str:
    return _mark(f"config/rbac/{name}.yaml") + text


def _documents(text: str) -> list[str]:
    return re.split(r"(?m)^---\n", text)


def _kind(document: str) -> str:
    found = re.search(r"(?m)^kind: (\w+)", document)
    return found[1] if found else ""


def _without_account(name: str, text: str, *, also: tuple[str, ...] = ()) -> str:
    """Files can be applied one by one, so several of them make the namespace and the account; here one does."""
    unwanted = (*also, *(() if name == "management" else ("Namespace", "ServiceAccount")))
    head = "".join(itertools.takewhile(lambda line: line.startswith("#"), text.splitlines(keepends=True)))
    kept = [document for document in _documents(text.removeprefix(head)) if _kind(document) not in unwanted]
    return head + "---\n".join(kept)


def _template(name: str, condition: str) -> str:
    """One file of rights as a template of the chart. Helm makes the namespace itself."""
    text = _without_account(name, (RBAC / f"{name}.yaml").read_text(), also=("Namespace",))
    parts = []
    for part in _documents(_in_release(text)):
        if _kind(part) == "ServiceAccount":
            part = f"{part.rstrip()}\n{_ANNOTATED}"
        unless = next((when for role, when in UNLESS.items() if _is_about(part, role)), "")
        parts.append(_if(f"not {unless}", f"---\n{part}") if unless else f"---\n{part}")
    text = _marked(name, "".join(parts))
    return _if(condition, text) if condition else text


def _is_about(document: str, role: str) -> bool:
    """Whether it is this ClusterRole, or its binding."""
    found = re.search(r"(?m)^metadata:\n  name: (.+)$", document)
    return _kind(document).startswith("ClusterRole") and found is not None and found[1] == role


def kinds() -> dict[str, str]:
    """The kinds that are built in beside Jobs, in lower case, and their resources as ``PLURAL.VERSION.GROUP``."""
    found = re.findall(r"(?m)^- kind: (\w+)\n  resource: (\S+)$", TABLE.read_text())
    return {kind.lower(): resource for kind, resource in sorted(found)}


def _kind_component(name: str, text: str) -> str:
    (kind,) = re.findall(r"where the setting kinds has (\w+)\.", text)
    plural, version, group = kinds()[name].split(".", 2)
    patches = ""
    for document in _documents(WEBHOOKS.read_text()):
        patches += f"- target: {{kind: {_kind(document)}, name: jobmirror}}\n  patch: |\n"
        for number, operations in enumerate(re.findall(r"operations: \[(.+?)\]", document)):
            rule = f"apiGroups: [{group}], apiVersions: [{version}], operations: [{operations}], resources: [{plural}]"
            patches += f"    - op: add\n      path: /webhooks/{number}/rules/-\n"
            patches += f"      value: {{{rule}, scope: Namespaced}}\n"
    return (
        f"# The permissions for {kind} on the management cluster. Where the component webhook stands before\n"
        "# this one, the webhook is asked about such objects, too. Written by deploy/generate.py.\n"
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels:\n- pairs:\n"
        f"    app.kubernetes.io/name: jobmirror\nresources:\n- rbac.yaml\npatches:\n{patches}"
    )


_KINDS = """\
{{- /* Written by deploy/generate.py. What config.kinds has beside Jobs, as JSON. */ -}}
{{- define "jobmirror.kinds" -}}
{{- $builtIn := dict BUILT_IN }}
{{- $found := list }}
{{- range $kind := (dig "kinds" (list) .Values.config) }}
{{- $entry := ternary (dict "kind" $kind) $kind (kindIs "string" $kind) }}
{{- $name := lower (get $entry "kind") }}
{{- $resource := default (get $builtIn $name) (get $entry "resource") }}
{{- if $resource }}
{{- $parts := regexSplit "[.]" $resource 3 }}
{{- $plain := printf "%s.%s" (index $parts 0) (index $parts 2) }}
{{- range $known, $its := $builtIn }}
{{- if eq $its $resource }}{{- $plain = $known }}{{- end }}
{{- end }}
{{- $one := dict "name" $plain "plural" (index $parts 0) "version" (index $parts 1) "group" (index $parts 2) }}
{{- $_ := set $one "timeToLive" (default "" (get $entry "timeToLive")) }}
{{- $found = append $found $one }}
{{- else if ne $name "job" }}
{{- fail (printf "config.kinds: %s is not built in; one of your own needs resource" (get $entry "kind")) }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
"""


def _kinds_part() -> str:
    """The list of kinds that other templates go by."""
    return _KINDS.replace("BUILT_IN", " ".join(f'"{name}" "{resource}"' for name, resource in kinds().items()))


def _kinds_template() -> str:
    """The permissions for each of ``config.kinds``: ClusterRoles, or Roles in chosen namespaces."""
    lines = [
        "{{- /* Written by deploy/generate.py from config/rbac/kinds/management-*.yaml: change them there. */ -}}",
        '{{- range $kind := include "jobmirror.kinds" . | fromJsonArray }}',
        '{{- range $where := default (list "") $.Values.config.namespaces }}',
    ]
    for number, name in enumerate(kinds()):
        lines.append(f'{{{{- {"else " if number else ""}if eq $kind.name "{name}" }}}}')
        lines.append(_kind_rights((RBAC / f"kinds/management-{name}.yaml").read_text()))
    return "\n".join([*lines, "{{- else }}", _kind_rights(_OWN_KIND), "{{- end }}", "{{- end }}", "{{- end }}", ""])


def _kind_rights(text: str) -> str:
    """One kind's roles in the template: what is bound in chosen namespaces is a Role there."""
    text = re.sub(r"(?m)^# For chosen namespaces only, .*\n", "", text)
    text = _in_release(text, "$").replace(
        _LABELS, f"{_LABELS}  {{{{- with $where }}}}\n  namespace: {{{{ . }}}}\n  {{{{- end }}}}\n"
    )
    # What has a time to live by its entry is deleted when that is over; some kinds that are built in have one anyway.
    text = text.replace("watch, patch]", "watch, patch{{ if $kind.timeToLive }}, delete{{ end }}]")
    return "---\n" + re.sub(r"\bkind: ClusterRole", "kind: {{ if not $where }}Cluster{{ end }}Role", text).rstrip()


def _webhooks_template() -> str:
    """The webhook's configurations; cert-manager is told to write its authority into them."""
    text = re.sub(r"(?m)^(metadata:\n  name: .+\n)", rf"\g<1>{_INJECTED}", WEBHOOKS.read_text())
    text = re.sub(r"(?m)^  - \{apiGroups: \[batch\], .+\}\n", lambda found: found[0] + _hook_rules(found[0]), text)
    body = _mark("config/webhook.yaml") + _in_release(text)
    return _if(WHEN["webhook"], body)


def _hook_rules(rule: str) -> str:
    """The rule for Jobs again, for each of ``config.kinds``."""
    own = (
        rule.replace("[batch]", "[{{ .group }}]")
        .replace("[v1]", "[{{ .version }}]")
        .replace("[jobs]", "[{{ .plural }}]")
    )
    return f'  {{{{- range include "jobmirror.kinds" . | fromJsonArray }}}}\n{own}  {{{{- end }}}}\n'


def _namespaced_template(name: str) -> str:
    """The Roles of one namespace, for each of those that are chosen, and the ones that there are once."""
    example, chosen, condition = NAMESPACED[name]
    head, here = f"namespace: {example}", "namespace: {{ . }}"
    documents = _documents(_without_account(name, (RBAC / f"{name}.yaml").read_text()))
    each = [_in_release(part, "$").replace(head, here) for part in documents]
    loop = "".join(f"---\n{part}" for part in each if here in part)
    once = "".join(f"---\n{_in_release(part)}" for part in documents if head not in part)
    text = f"{{{{- range {chosen} }}}}\n{loop.rstrip()}\n{{{{- end }}}}\n"
    if once:
        text += _if(chosen, once)
    text = _marked(name, text)
    return _if(condition, text) if condition else text


def _if(condition: str, text: str) -> str:
    """A part of the chart that is there on a condition."""
    return f"{{{{- if {condition} }}}}\n{text.rstrip()}\n{{{{- end }}}}\n"


def _in_release(text: str, root: str = "") -> str:
    """In the release's namespace, and labelled as all else. ``root``: what the whole of the values is called there."""
    labels = f'  labels:\n    {{{{- include "jobmirror.labels" {root or "."} | nindent 4 }}}}\n'
    text = re.sub(r"(?m)^metadata:\n(  name: .+\n)", rf"metadata:\n\g<1>{labels}", text)
    return re.sub(r"(?m)^([^#\n]*)\bjobmirror-system\b", rf"\g<1>{{{{ {root}.Release.Namespace }}}}", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
