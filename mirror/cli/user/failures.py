"""What went wrong, as a user understands it: whose cluster, which right is missing, what to do about it. Pure.

The commands raise ``Failure``; click prints it on stderr and ends with code 1. Wrong usage ends with 2, by click too.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from mirror.cli.advice import fix_of, fix_of_manager
from mirror.kube.errors import (
    ApiError,
    BadAnswer,
    Forbidden,
    KubeError,
    NotFound,
    NotServed,
    OutcomeUnknown,
    Unauthorized,
    Unreachable,
    describe,
)
from mirror.kube.kubeconfig_node import KubeconfigRefused
from mirror.model.text import clean

MANAGEMENT = "the management cluster"
MANAGER = "the manager"


class Failure(click.ClickException):
    """One line for stderr, and exit code 1."""

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__(clean(text, longest=2000))


class NotAllowed(Failure):
    """A permission is missing; other requests may still be allowed."""


class KindNotServed(Failure):
    """The cluster does not know this kind of object."""


class NotThere(Failure):
    """There is no such object."""


class NotYet(Failure):
    """Not available yet: there is no worker, or a container has not started. Retrying may succeed."""


class Rejected(Failure):
    """A manifest that the API server would not take."""


class Busy(Failure):
    """Too many requests at once; the same request succeeds later."""


class OutOfReach(Failure):
    """It cannot be reached, or does not answer."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What was requested, in the words of a message about a missing permission."""

    verb: str
    resource: str
    """As in a Role: ``jobs.batch``, ``pods/log``."""
    namespace: str = ""
    """Empty: all."""
    name: str = ""
    cluster: str = MANAGEMENT
    server: str = ""
    """Its URL, where a kubeconfig of the user's names it."""

    @property
    def where(self) -> str:
        """In which namespaces, in words."""
        return f"in namespace {self.namespace}" if self.namespace else "in all namespaces"


def failure_of(error: KubeError, doing: Doing) -> Failure:
    """The failure of a request, in words."""
    match error:
        case KubeconfigRefused():
            return Failure(f"kubeconfig: {error}")
        case Unauthorized():
            return Failure(f"{doing.cluster} rejected your credentials (401): log in again, or renew your token")
        case Forbidden():
            return NotAllowed(_forbidden(error, doing))
        case NotFound() if error.about_kind == "namespaces":
            return Failure(f"namespace {doing.namespace} not found on {doing.cluster}")
        case NotFound():
            return NotThere(_not_found(doing))
        case NotServed():
            return KindNotServed(f"{doing.cluster} does not serve {doing.resource}")
        case ApiError():
            return Failure(f"{doing.cluster} answered {error.code}: {error.brief or error.reason}")
        case Unreachable() | OutcomeUnknown():
            advice = fix_of_manager if doing.cluster == MANAGER else fix_of
            why, where = describe(error), f" ({doing.server})" if doing.server else ""
            return OutOfReach(f"{doing.cluster}{where} is unreachable: {why}; {advice(why)}")
        case BadAnswer():
            fix = "; check the server's address in the kubeconfig" if doing.server else ""
            return Failure(f"{doing.cluster} sent an invalid response: {error}{fix}")
    return Failure(f"{doing.cluster}: {error}")


def _forbidden(error: Forbidden, doing: Doing) -> str:
    missing = f"missing permission: {doing.verb} {doing.resource} {doing.where} on {doing.cluster}"
    return f"{missing}; a Role with this verb and resource grants it ({error.brief})"


def _not_found(doing: Doing) -> str:
    if not doing.name:
        return f"{doing.resource} not found {doing.where} on {doing.cluster}"
    return f"{doing.resource} {doing.name} not found {doing.where} on {doing.cluster}"
