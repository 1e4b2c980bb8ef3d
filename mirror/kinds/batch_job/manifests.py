"""The Jobs that a manifest stands for, and the least Job that a worker would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mirror.batch import views
from mirror.kube.resources import JOBS


def drafts_in(document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """A Job itself, or the Job that a CronJob makes; ``differences.draft`` says what is wrong with one."""
    group, slash, _ = views.text(document.get("apiVersion")).rpartition("/")
    if slash and group != JOBS.group:
        return
    match document.get("kind"):
        case JOBS.kind:
            yield document
        case "CronJob":
            template = views.mapping(views.mapping(document.get("spec")).get("jobTemplate"))
            metadata = {**views.mapping(document.get("metadata")), **views.mapping(template.get("metadata"))}
            # Of an older version is its Job, too, where the server that would be asked has it no more.
            version = {"apiVersion": document.get("apiVersion")} if document.get("apiVersion") else {}
            yield {**_type(), **version, "metadata": metadata, "spec": template.get("spec")}


def dry_run_body() -> dict[str, Any]:
    """A suspended Job of one container."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "none", "image": "registry.invalid/none"}]}
    return {**_type(), "spec": {"suspend": True, "template": {"spec": pod}}}


def _type() -> dict[str, Any]:
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
