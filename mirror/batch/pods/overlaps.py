"""Warnings of files in one volume that are in one place, or one below another (D17). Called by ``warnings``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mirror.batch.canonical import Json
from mirror.batch.quoting import quoted

_Place: TypeAlias = tuple[str, str]
"""A path, and where its file comes from if that must be said."""


def overlap_warnings(volumes: Sequence[Json]) -> Iterator[str]:
    """All texts about these volumes, in the server's order."""
    for volume in volumes:
        name = quoted(volume["name"])
        for words, source in _plain_sources(volume):
            for overlap in _overlaps([(item["path"], "") for item in source.get("items", ())]):
                yield f"volume {name} ({words}): overlapping paths: {overlap}"
        sources = volume.get("projected", {}).get("sources") or ()
        for _ in (one for one in sources if not one):
            yield f"volume {name} (Projected) has no sources provided"
        for overlap in _overlaps([place for one in sources for place in _projected(one)]):
            yield f"volume {name} (Projected): overlapping paths: {overlap}"


def _plain_sources(volume: Json) -> Iterator[tuple[str, Json]]:
    if "configMap" in volume:
        yield f"ConfigMap {quoted(volume['configMap'].get('name', ''))}", volume["configMap"]
    if "secret" in volume:
        yield f"Secret {quoted(volume['secret'].get('secretName', ''))}", volume["secret"]
    if "downwardAPI" in volume:
        yield "DownwardAPI", volume["downwardAPI"]


def _projected(source: Json) -> list[_Place]:
    for kind, words in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = source.get(kind, {}).get("items")
        if items:
            origin = f"{words} {quoted(source[kind].get('name', ''))}"
            return [(item["path"], origin) for item in items]
    items = source.get("downwardAPI", {}).get("items")
    if items:
        return [(item["path"], "DownwardAPI") for item in items]
    return [(source["serviceAccountToken"]["path"], "ServiceAccountToken")] if "serviceAccountToken" in source else []


def _overlaps(places: Sequence[_Place]) -> Iterator[str]:
    known: list[_Place] = []
    for path, origin in places:
        path = path.rstrip("/")
        for other, other_origin in known:
            if path and other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{_shown(path, origin)} with {_shown(other, other_origin)}"
        known.append((path, origin))


def _shown(path: str, origin: str) -> str:
    return f"{quoted(path)} ({origin})" if origin else quoted(path)
