"""The options of requests, from the query and the ``Accept`` header: parsed and rejected as by kube-apiserver. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, forbidden, invalid_text, not_supported, not_supported_text, required
from mirror.embedded import durations
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.decoding.bodies import Validation
from mirror.embedded.apiserver.apimachinery.errors import StatusError, bad_request, invalid, not_acceptable
from mirror.embedded.apiserver.messages import Request

META_GROUP = "meta.k8s.io"
EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"
_VALIDATIONS: Mapping[str, Validation] = {"": "Warn", "Ignore": "Ignore", "Strict": "Strict", "Warn": "Warn"}
_LONGEST_MANAGER = 128
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Of list, watch and deletecollection."""

    labels: selectors.Labels = ()
    fields: tuple[selectors.Term, ...] = ()
    is_watch: bool = False
    allows_bookmarks: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    """``continue``."""
    timeout_seconds: int | None = None
    sends_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Of create, update and patch."""

    is_dry_run: bool = False
    manager: str = ""
    validation: Validation = "Warn"
    force: bool | None = None


_NO_WRITE_OPTIONS = WriteOptions()


def list_options(request: Request, *, is_watch: bool = False) -> ListOptions:
    """Raises: StatusError 400, 422."""
    options = decoded_list_options(request, is_watch=is_watch)
    # A path that watches is not told by the options, so their rules are those of a list.
    watch = flag(request.parameters, "watch") is True
    problems = _watch_problems(options) if watch else _list_problems(options)
    if problems:
        raise invalid("ListOptions", META_GROUP, "", problems)
    return options


def decoded_list_options(request: Request, *, is_watch: bool = False) -> ListOptions:
    """Each by itself can be read; whether they go together is for ``list_options``. Raises: StatusError 400."""
    query = request.parameters
    if not query:
        return ListOptions(is_watch=is_watch, **_initial(is_watch, "", "", None))
    watch = flag(query, "watch") is True
    bookmarks = flag(query, "allowWatchBookmarks") is True
    limit = integer(query, "limit")
    timeout = integer(query, "timeoutSeconds")
    initial = flag(query, "sendInitialEvents")
    labels = selectors.label_selector(query.get("labelSelector", ""))
    fields = selectors.field_terms(query.get("fieldSelector", ""))
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    token = query.get("continue", "")
    return ListOptions(
        labels=labels,
        fields=fields,
        is_watch=watch or is_watch,
        allows_bookmarks=bookmarks,
        version=version,
        limit=limit or 0,
        token=token,
        timeout_seconds=timeout,
        **_initial(watch, version, match, initial),
    )


def write_options(request: Request, *, is_patch: bool = False, is_apply: bool = False) -> WriteOptions:
    """Raises: StatusError 400, 422."""
    if not request.query and not is_apply:
        return _NO_WRITE_OPTIONS
    query = request.parameters
    force = flag(query, "force") if is_patch else None
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    dry_run = request.all_parameters.get("dryRun", [])
    problems: list[Violation] = []
    if is_apply and not manager:
        problems.append(required("fieldManager", "is required for apply patch"))
    if is_patch and not is_apply and force is not None:
        problems.append(forbidden("force", "may not be specified for non-apply patch"))
    problems += manager_problems("fieldManager", manager)
    problems += dry_run_problems(dry_run)
    if validation not in _VALIDATIONS:
        problems.append(not_supported_text("fieldValidation", validation, list(_VALIDATIONS)))
    if problems:
        kind = "PatchOptions" if is_patch else "UpdateOptions" if request.method == "PUT" else "CreateOptions"
        raise invalid(kind, META_GROUP, "", problems)
    return WriteOptions(bool(dry_run), manager, _VALIDATIONS[validation], force)


def check_timeout(request: Request) -> None:
    """How long a client waits at most; who waits less than the server takes is answered all the same.

    Raises:
        StatusError: 400, it is no duration.
    """
    text = request.parameters.get("timeout", "")
    if not text:
        return
    try:
        durations.parse(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from error


def check_export(request: Request) -> None:
    """A form of ``get`` that is no more. Raises: StatusError 400."""
    if flag(request.parameters, "export"):
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")


def manager_problems(field: str, manager: str) -> list[Violation]:
    """What is wrong with the name of a field manager."""
    found: list[Violation] = []
    if len(manager.encode()) > _LONGEST_MANAGER:
        found.append(Violation(field, "FieldValueTooLong", f"Too long: may not be more than {_LONGEST_MANAGER} bytes"))
    position = 0
    for one in manager:
        if not (one.isprintable() and (one == " " or not one.isspace())):
            shown = f"U+{ord(one):04X}"
            found.append(invalid_text(field, manager, f"invalid character {shown} (at position {position})"))
        position += len(one.encode(errors="replace"))
    return found


def manager_of(options: WriteOptions, request: Request) -> str:
    """The field manager, or what the user agent calls itself."""
    if options.manager:
        return options.manager
    name = request.headers.get("user-agent", "").split("/", 1)[0]
    name = "".join(one for one in name if one.isprintable())
    return name.encode()[:_LONGEST_MANAGER].decode(errors="ignore")


def _initial(watch: bool, version: str, match: str, initial: bool | None) -> dict[str, Any]:
    if watch and initial is None and not match and version in ("", "0"):
        return {"sends_initial_events": True, "match": NOT_OLDER_THAN}
    return {"sends_initial_events": initial, "match": match}


def _list_problems(options: ListOptions) -> list[Violation]:
    found: list[Violation] = []
    field, match = "resourceVersionMatch", options.match
    if match:
        if not options.version:
            found.append(forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
        if options.token:
            found.append(forbidden(field, f"{field} is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            found.append(not_supported(field, match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and options.version == "0":
            found.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if options.sends_initial_events is not None:
        found.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return found


def _watch_problems(options: ListOptions) -> list[Violation]:
    found: list[Violation] = []
    field, match = "resourceVersionMatch", options.match
    if options.sends_initial_events is not None and match != NOT_OLDER_THAN:
        found.append(forbidden(field, f"sendInitialEvents requires setting {field} to {NOT_OLDER_THAN}"))
    if match:
        if options.sends_initial_events is None:
            found.append(forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided"))
        if match != NOT_OLDER_THAN:
            found.append(not_supported(field, match, (NOT_OLDER_THAN,)))
        if options.token:
            found.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    return found


def dry_run_problems(values: Sequence[str]) -> list[Violation]:
    if all(one == "All" for one in values):
        return []
    shown = "[" + ",".join(map(quoted, values)) + "]"
    return [Violation("dryRun", "FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"')]


def integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not _INTEGER.fullmatch(text):
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    number = int(text[:32])
    if not -(2**63) <= number < 2**63 or len(text) > 32:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return number


def flag(query: Mapping[str, str], name: str) -> bool | None:
    text = query.get(name)
    return None if text is None else text.lower() not in ("false", "0")


# The form of a response: the ``Accept`` header, as kube-apiserver reads it.

YAML_TYPE = "application/yaml"
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_TARGETS = (TABLE, PARTIAL, PARTIAL_LIST)
_HUMAN = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_OFFERED = (("application", "json"), ("application", "yaml"))
OBJECTS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
"""What upstream says it has; ours cannot speak the last, and says so only by refusing it."""
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
"""And of watches."""
_ONLY = "only the following media types are accepted: "
_ANY_JSON = ("", "application/json", "*/*")


class Format(NamedTuple):
    """The form of an answer; ``target`` is empty for the object itself."""

    target: str = ""
    version: str = "v1"
    """Of ``meta.k8s.io``, for targets."""
    is_yaml: bool = False
    is_pretty: bool = False


PLAIN = Format()
"""Objects are sent as they are stored."""
_PRETTY = Format(is_pretty=True)


def check_routed(request: Request, representations: str) -> None:
    """Upstream's router, which custom resources do without, looks at the types first; it knows no ``application/*``.

    Args:
        representations: what there is of the thing, as the router lists it.

    Raises:
        StatusError: 406.
    """
    accept = request.headers.get("accept", "")
    if accept in _ANY_JSON:
        return
    offered = {"*/*", *representations.split(", ")}
    if not any(one.partition(";")[0].strip(" ") in offered for one in accept.split(",")):
        raise not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {representations}")


def format_of(request: Request) -> Format:
    """Raises: StatusError 406."""
    accept = request.headers.get("accept", "")
    if accept in _ANY_JSON:
        found: Format | None = PLAIN
    elif len(accept) <= _LONGEST_REMEMBERED:
        found = _remembered(accept)
    else:
        found = _negotiated(accept)
    if found is None:
        raise not_acceptable(_ONLY + OBJECTS)
    return found._replace(is_pretty=True) if _is_pretty(request) else found


def format_of_discovery(request: Request) -> Format:
    """JSON or YAML; what is discovered is never converted. Who asks for protobuf alone gets JSON.

    Raises:
        StatusError: 406.
    """
    accept = request.headers.get("accept", "")
    found = _negotiated(accept, targets=()) if accept else PLAIN
    if found is None and "protobuf" not in accept:
        raise not_acceptable(_ONLY + OBJECTS)
    found = found or PLAIN
    return found._replace(is_pretty=True) if _is_pretty(request) else found


def format_of_errors(request: Request) -> Format:
    """Errors come in the accepted encoding, if it is supported; else as JSON. They are never converted."""
    accept = request.headers.get("accept", "")
    found = PLAIN if accept in _ANY_JSON else _negotiated(accept, targets=()) or PLAIN
    return found._replace(is_pretty=True) if _is_pretty(request) else found


def _is_pretty(request: Request) -> bool:
    if "pretty" in request.query:
        wanted = request.parameters.get("pretty")
        if wanted:
            return wanted in _TRUE
    return request.headers.get("user-agent", "").startswith(_HUMAN)


def no_stream() -> StatusError:
    """406: a watch has no such form."""
    return not_acceptable(_ONLY + STREAMS)


class _Clause(NamedTuple):
    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]


def _negotiated(accept: str, targets: Sequence[str] = _TARGETS) -> Format | None:
    clauses = sorted(filter(None, map(_clause, accept.split(","))), key=lambda one: -one.quality)
    for clause in clauses:
        for type_, subtype in _OFFERED:
            if (clause.type, clause.subtype) in ((type_, subtype), (type_, "*"), ("*", "*")):
                found = _accepted(clause, targets, is_yaml=subtype == "yaml")
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


def _accepted(clause: _Clause, targets: Sequence[str], *, is_yaml: bool) -> Format | None:
    found = dict(clause.parameters)
    if found.get("stream") not in (None, "", "" if is_yaml else "watch") or found.get("sv"):
        return None
    is_pretty = found.get("pretty") == "1"
    if not {"as", "g", "v"} & found.keys():
        return Format(is_yaml=is_yaml, is_pretty=is_pretty)
    target, group, version = found.get("as", ""), found.get("g", ""), found.get("v", "")
    if target not in targets or group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Format(target, version, is_yaml, is_pretty)
