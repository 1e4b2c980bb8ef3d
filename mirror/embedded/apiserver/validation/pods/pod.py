"""What the API refuses in a pod: the rules of pod templates under a pod's paths, and those that only pods have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mirror.batch.violations import Violation, forbidden, invalid_text
from mirror.embedded.apiserver.apimachinery.strategy import Json
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.pods import template

MIRROR, DELETION_COST = "kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"
_TEMPLATE, _OF_TEMPLATES = "spec.template.", "spec.template.spec.ephemeralContainers"
_INTEGER = re.compile(r"-0*[0-9]{1,10}|0|[1-9][0-9]{0,9}", re.ASCII)
_LARGEST = 2**31 - 1


def check_create(pod: Json) -> Iterator[Violation]:
    """A new pod."""
    spec = pod["spec"]
    yield from check(pod)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def check(pod: Json) -> Iterator[Violation]:
    """Metadata and spec of any pod."""
    spec = pod["spec"]
    yield from metadata.check_meta(pod["metadata"])
    yield from check_annotations(pod["metadata"].get("annotations", {}), spec)
    yield from check_spec(spec)
    if not spec.get("serviceAccountName"):
        yield from _check_token_volumes(spec)
    for kind in ("containers", "initContainers"):
        yield from _check_images(f"spec.{kind}", spec.get(kind) or ())


def check_spec(spec: Json) -> Iterator[Violation]:
    """The rules that templates have, too."""
    for violation in template.check({"metadata": {}, "spec": spec}, allow_bad_selector_values=False, is_pod=True):
        if violation.field != _OF_TEMPLATES:
            yield replace(violation, field=violation.field.removeprefix(_TEMPLATE))


def check_annotations(annotations: Mapping[str, str], spec: Json) -> Iterator[Violation]:
    """Annotations that mean something to the server."""
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_text(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_INTEGER.fullmatch(cost) and -_LARGEST - 1 <= int(cost) <= _LARGEST):
        yield invalid_text(f"metadata.annotations[{DELETION_COST}]", cost, "must be a 32bit integer")


def _check_token_volumes(spec: Json) -> Iterator[Violation]:
    for position, volume in enumerate(spec.get("volumes", ())):
        for number, source in enumerate(volume.get("projected", {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                field = f"spec.volumes[{position}].projected.sources[{number}].serviceAccountToken"
                yield forbidden(field, "must not be specified when serviceAccountName is not set")


def _check_images(field: str, containers: Sequence[Json]) -> Iterator[Violation]:
    for position, container in enumerate(containers):
        image = container.get("image", "")
        if image != image.strip():
            yield invalid_text(f"{field}[{position}].image", image, "must not have leading or trailing whitespace")
