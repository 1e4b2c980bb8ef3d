"""The options of a delete, in the query or in a body, parsed and refused as kube-apiserver does it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, invalid_text, not_supported
from mirror.embedded.apiserver.apimachinery.decoding import bodies, names, syntax, text, typed, yamls
from mirror.embedded.apiserver.apimachinery.errors import Json, bad_request, invalid
from mirror.embedded.apiserver.apimachinery.schemas import versions
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.apiserver.request.options import META_GROUP, dry_run_problems, flag, integer

_KIND = "DeleteOptions"
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Of delete and deletecollection."""

    is_dry_run: bool = False
    grace_seconds: int | None = None
    propagation: str | None = None
    orphan: bool | None = None
    """``orphanDependents``, which nobody should use any more."""
    uid: str | None = None
    version: str | None = None


def delete_options(request: Request) -> DeleteOptions:
    """From the body if there is one, else from the query. Raises: StatusError 400, 415, 422."""
    if request.body:
        body = decoded(request.body, request.headers.get("content-type", ""))
        options, dry_run = _of_body(body)
    else:
        query = request.parameters
        dry_run = request.all_parameters.get("dryRun", [])
        options = DeleteOptions(
            is_dry_run=bool(dry_run),
            grace_seconds=integer(query, "gracePeriodSeconds"),
            orphan=flag(query, "orphanDependents"),
            propagation=query.get("propagationPolicy"),
            uid=query.get("uid") or None,
            version=query.get("resourceVersion") or None,
        )
    problems: list[Violation] = []
    if options.orphan is not None and options.propagation is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(invalid_text("propagationPolicy", options.propagation, detail))
    if options.propagation is not None and options.propagation not in _POLICIES:
        problems.append(not_supported("propagationPolicy", options.propagation, (*_POLICIES, "nil")))
    problems += dry_run_problems(dry_run)
    if problems:
        raise invalid("DeleteOptions", META_GROUP, "", problems)
    return options


def decoded(data: bytes, content_type: str) -> Json:
    """Options that stand in a body. Raises: StatusError 400, 415."""
    try:
        if bodies.media_type_of(content_type) == bodies.YAML_TYPE:
            data, _ = yamls.to_json(data)
        members = text.parse(data)
        version, kind = names.interpret(members)
        # Options are options in every version, even in one that nobody knows.
        if kind not in ("", _KIND) and not versions.is_known(version, kind):
            raise typed.Refusal(
                f"no kind {quoted(kind)} is registered for version {quoted(version or 'v1')} in scheme "
                '"pkg/runtime/scheme.go:111"'
            )
        if kind not in ("", _KIND):
            raise typed.Refusal("decoded object cannot be converted to DeleteOptions")
        return typed.Reading().body(members, _KIND)
    except text.NotJson:
        why = syntax.complaint(data) or "exceeded max depth"
        raise bad_request(f"couldn't get version/kind; json parse error: {why}") from None
    except (typed.Refusal, yamls.NotYaml) as refusal:
        raise bad_request(str(refusal)) from None


def _of_body(body: Json) -> tuple[DeleteOptions, list[str]]:
    preconditions = body.get("preconditions") or {}
    dry_run = body.get("dryRun") or []
    options = DeleteOptions(
        is_dry_run=bool(dry_run),
        grace_seconds=body.get("gracePeriodSeconds"),
        propagation=body.get("propagationPolicy"),
        orphan=body.get("orphanDependents"),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
    )
    return options, dry_run
