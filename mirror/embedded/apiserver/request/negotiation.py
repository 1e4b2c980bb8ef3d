"""In which form an answer is wanted: the ``Accept`` header, as kube-apiserver reads it. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mirror.embedded.apiserver.apimachinery.errors import StatusError, not_acceptable
from mirror.embedded.apiserver.messages import Request

YAML_TYPE = "application/yaml"
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_TARGETS = (TABLE, PARTIAL, PARTIAL_LIST)
_HUMAN = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_OFFERED = (("application", "json"), ("application", "yaml"))
_LISTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
"""What upstream says it has; ours cannot speak the last, and says so only by refusing it."""


class Format(NamedTuple):
    """The form of an answer; ``target`` is empty for the object itself."""

    target: str = ""
    version: str = "v1"
    """Of ``meta.k8s.io``, for targets."""
    is_yaml: bool = False
    is_pretty: bool = False

    @property
    def is_as_stored(self) -> bool:
        """Whether objects are sent as they lie there."""
        return not (self.target or self.is_yaml or self.is_pretty)


PLAIN = Format()
_PRETTY = Format(is_pretty=True)


def format_of(request: Request) -> Format:
    """Raises: StatusError 406."""
    accept = request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*"):
        found: Format | None = PLAIN
    elif len(accept) <= _LONGEST_REMEMBERED:
        found = _remembered(accept)
    else:
        found = _negotiated(accept)
    if found is None:
        raise not_acceptable(_refusal(accept))
    return found._replace(is_pretty=True) if _is_pretty(request) else found


def format_of_errors(request: Request) -> Format:
    """Errors are told in the encoding that is wanted, if there is it; else as JSON."""
    try:
        found = format_of(request)
    except StatusError:
        return _PRETTY if _is_pretty(request) else PLAIN
    return found._replace(target="") if found.target else found


def _is_pretty(request: Request) -> bool:
    if "pretty" in request.query:
        wanted = request.parameters.get("pretty")
        if wanted:
            return wanted in _TRUE
    return request.headers.get("user-agent", "").startswith(_HUMAN)


def _refusal(accept: str) -> str:
    """Upstream looks at the types first, and then whether it can convert."""
    types = {(one.type, one.subtype) for one in filter(None, map(_clause, accept.split(",")))}
    known = {*_OFFERED, ("application", "*"), ("*", "*"), ("application", "vnd.kubernetes.protobuf")}
    if types & known:
        return f"only the following media types are accepted: {_LISTED}"
    return f"406: Not Acceptable\n\nAvailable representations: {_LISTED}"


class _Clause(NamedTuple):
    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]


def _negotiated(accept: str) -> Format | None:
    clauses = sorted(filter(None, map(_clause, accept.split(","))), key=lambda one: -one.quality)
    for clause in clauses:
        for type_, subtype in _OFFERED:
            if (clause.type, clause.subtype) in ((type_, subtype), (type_, "*"), ("*", "*")):
                found = _accepted(clause, is_yaml=subtype == "yaml")
                if found is not None:
                    return found
    return None


_LONGEST_REMEMBERED = 1024
_remembered = lru_cache(maxsize=256)(_negotiated)


def _clause(text: str) -> _Clause | None:
    name, *parameters = (part.strip() for part in text.split(";"))
    type_, _, subtype = name.partition("/")
    if not name:
        return None
    pairs = [(key.strip(), value.strip().strip('"')) for key, _, value in (one.partition("=") for one in parameters)]
    quality = next((value for key, value in pairs if key == "q"), "1")
    number = float(quality) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", quality) else 1.0
    return _Clause(type_, subtype or "*", number, tuple(pair for pair in pairs if pair[0] != "q"))


def _accepted(clause: _Clause, *, is_yaml: bool) -> Format | None:
    found = dict(clause.parameters)
    if found.get("stream") not in (None, "", "watch") or found.get("sv"):
        return None
    is_pretty = found.get("pretty") == "1"
    if not {"as", "g", "v"} & found.keys():
        return Format(is_yaml=is_yaml, is_pretty=is_pretty)
    target, group, version = found.get("as", ""), found.get("g", ""), found.get("v", "")
    if target not in _TARGETS or group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Format(target, version, is_yaml, is_pretty)
