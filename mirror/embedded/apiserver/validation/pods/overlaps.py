"""Warnings of files in one volume that are in one place, or one below another (DF17). Called by ``warnings``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery.canonical import Json

_MOST_OVERLAPS = 1000
"""With one path; no answer has room for more."""
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


class _Node:
    """A segment of paths: the places whose path ends here, and what is below."""

    __slots__ = ("below", "places")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.places: list[int] = []


def _overlaps(places: Sequence[_Place]) -> Iterator[str]:
    """Pairs of which one is the other's path or above it; found in a tree, since there may be thousands."""
    root, known = _Node(), [(path.rstrip("/"), origin) for path, origin in places]
    for number, (path, origin) in enumerate(known):
        if not path:
            continue
        node, met = root, []
        for segment in path.split("/"):
            met += node.places
            node = node.below.setdefault(segment, _Node())
        met += islice(_within(node), _MOST_OVERLAPS)
        for other in sorted(met):
            yield f"{_shown(path, origin)} with {_shown(*known[other])}"
        node.places.append(number)


def _within(node: _Node) -> Iterator[int]:
    """All places here and below."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield from one.places
        waiting += one.below.values()


def _shown(path: str, origin: str) -> str:
    return f"{quoted(path)} ({origin})" if origin else quoted(path)
