"""Which kinds an API server serves, asked of its discovery; for those who care about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mirror.embedded.controllers.client import Api
from mirror.kube.errors import KubeError
from mirror.kube.resources import Resource


class Unknown(KubeError):
    """There is no such kind, as far as discovery knows by now."""


@dataclass(frozen=True, slots=True)
class Served:
    """A kind and what can be done with it."""

    resource: Resource
    verbs: frozenset[str]
    is_preferred: bool
    """Whether its version is the first of its group that serves it."""


@dataclass(slots=True)
class Kinds:
    """What was found at the last look."""

    _served: list[Served] = field(default_factory=list)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served)

    def find(self, api_version: str, kind: str) -> Resource:
        """The resource of an owner reference.

        Raises:
            Unknown: nobody serves it.
        """
        for one in self._served:
            if one.resource.kind == kind and one.resource.api_version == api_version:
                return one.resource
        raise Unknown(f"no matches for kind {kind} in version {api_version}")

    def supporting(self, *verbs: str) -> list[Resource]:
        """Each kind once that can be treated so, in its preferred version."""
        return [one.resource for one in self._served if one.is_preferred and one.verbs.issuperset(verbs)]

    async def refresh(self, api: Api) -> None:
        """Look again.

        Raises:
            KubeError: a part of it could not be read; what was known stays.
        """
        found: list[Served] = []
        seen: set[tuple[str, str]] = set()
        for group, version in await _versions(api):
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            for one in (await api.raw(path)).get("resources") or ():
                if "/" in one["name"]:
                    continue
                is_preferred = (group, one["name"]) not in seen
                seen.add((group, one["name"]))
                resource = Resource(group, version, one["name"], one["kind"], bool(one.get("namespaced")))
                found.append(Served(resource, frozenset(one.get("verbs") or ()), is_preferred))
        self._served = found


async def _versions(api: Api) -> list[tuple[str, str]]:
    """All groups with their versions, the preferred one of each first."""
    found = [("", version) for version in (await api.raw("/api")).get("versions") or ()]
    for group in (await api.raw("/apis")).get("groups") or ():
        versions = [one["version"] for one in group.get("versions") or ()]
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions.sort(key=lambda version: version != preferred)
        found += [(group["name"], version) for version in versions]
    return found
