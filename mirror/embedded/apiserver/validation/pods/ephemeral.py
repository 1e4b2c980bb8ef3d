"""What the API refuses in ephemeral containers, beside that a pod template may have none (C31)."""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, duplicate, forbidden, invalid_text, not_found
from mirror.embedded.apiserver.apimachinery.canonical import Json
from mirror.embedded.apiserver.validation.pods import containers

_NOT_FOR_THEM = "cannot be set for an Ephemeral Container"
_NOT_ALLOWED = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


def check(field: str, pod: Json, context: containers.Context) -> Iterator[Violation]:
    """Names are unique among all containers of the pod; a target is one of the others."""
    others = {one["name"] for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    seen = set(others)
    for position, container in enumerate(pod.get("ephemeralContainers", ())):
        path, name = f"{field}[{position}]", container["name"]
        yield from containers.check_common(path, container, context)
        image, target = container.get("image", ""), container.get("targetContainerName")
        if image != image.strip():
            yield invalid_text(f"{path}.image", image, "must not have leading or trailing whitespace")
        if name in seen:
            yield duplicate(f"{path}.name", quoted(name))
        seen.add(name)
        if target and target not in others:
            yield not_found(f"{path}.targetContainerName", target)
        yield from _check_fields(path, container)


def _check_fields(path: str, container: Json) -> Iterator[Violation]:
    for name in _NOT_ALLOWED:
        # Resources are always there; of all others, even an empty one is one.
        if container.get("resources") if name == "resources" else name in container:
            yield forbidden(f"{path}.{name}", _NOT_FOR_THEM)
    for position, mount in enumerate(container.get("volumeMounts", ())):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden(f"{path}.volumeMounts[{position}].{name}", _NOT_FOR_THEM)
