"""The user's own kubeconfig: found as kubectl finds it, merged as kubectl merges it, and the context that counts.

Used by ``cluster`` to connect and by ``completion``. What may stand in it, ``mirror.kube.kubeconfig`` knows. The
manager reads its own file with kubernetes_asyncio (``mirror.kube.auth``), which takes half a second to import.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirror.model.failures import file_words
from mirror.model.text import nearest

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_LISTS = ("clusters", "contexts", "users")


class NoKubeconfig(Exception):
    """There is no usable kubeconfig; the text is for people."""


@dataclass(frozen=True, slots=True)
class Merged:
    """All files as one document, with the context to use."""

    document: Mapping[str, Any]
    context: str

    @property
    def namespace(self) -> str:
        """The context's namespace; empty where it has none."""
        for one in self.document["contexts"]:
            if one["name"] == self.context:
                return str((one.get("context") or {}).get("namespace") or "")
        return ""

    @property
    def contexts(self) -> list[str]:
        """The names of all contexts."""
        return [one["name"] for one in self.document["contexts"]]


def paths(option: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The files that count: the option's, else those of ``KUBECONFIG``, else the one at home."""
    if option:
        return (option,)
    listed = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    return tuple(listed) or (os.path.join(os.path.expanduser("~"), ".kube", "config"),)


def pod_namespace() -> str:
    """The namespace of the pod that we run in; empty where that is not known."""
    try:
        with open(f"{SERVICE_ACCOUNT}/namespace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read(files: Sequence[str], context: str, *, must_exist: bool) -> Merged | None:
    """Merge the files: what comes first wins. None if none of them exists, unless that is an error.

    Raises:
        NoKubeconfig: a file cannot be read, or there is no such context.
    """
    merged: dict[str, Any] = {"kind": "Config", **{plural: [] for plural in _LISTS}}
    found = False
    for file in files:
        if not os.path.exists(file):
            continue
        found = True
        _merge(merged, _content(file), file)
    if not found:
        if must_exist:
            raise NoKubeconfig(f"kubeconfig {', '.join(files)}: no such file; use --kubeconfig, or set KUBECONFIG")
        return None
    chosen = context or merged.get("current-context") or ""
    if not chosen:
        raise NoKubeconfig(
            "the kubeconfig has no current context: use --context, or run kubectl config use-context NAME"
        )
    names = [one["name"] for one in merged["contexts"]]
    if chosen not in names:
        meant = nearest(chosen, names)
        known = f"did you mean {meant}?" if meant else f"available: {', '.join(names) or 'none'}"
        raise NoKubeconfig(f"context {chosen} not found in {', '.join(files)}; {known}")
    return Merged({**merged, "current-context": chosen}, chosen)


def _content(file: str) -> Mapping[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with open(file, "rb") as opened:
            content = yaml.load(opened, loader)
    except OSError as error:
        raise NoKubeconfig(f"kubeconfig {file}: {file_words(error)}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        raise NoKubeconfig(f"kubeconfig {file}: not YAML") from None  # its texts quote the file
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise NoKubeconfig(f"{file}: not a kubeconfig; use --kubeconfig FILE")
    return content


def _merge(merged: dict[str, Any], content: Mapping[str, Any], file: str) -> None:
    from mirror.kube.auth import with_absolute_paths

    for plural in _LISTS:
        taken = {one["name"] for one in merged[plural]}
        for one in content.get(plural) or ():
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise NoKubeconfig(f"{file}: {plural} contains an entry without a name")
            if one["name"] not in taken:
                taken.add(one["name"])
                merged[plural].append(with_absolute_paths(one, file))
    if content.get("current-context") and not merged.get("current-context"):
        merged["current-context"] = str(content["current-context"])
