"""What a control plane is made of, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from mirror.batch.feature_gates import FeatureGates
from mirror.embedded.apiserver.messages import User
from mirror.embedded.controllers.runner import NAMES
from mirror.embedded.controllers.settings import Settings
from mirror.jobcontroller.decide.values import Constants

JOB = "job"
"""Our Job controller, with the deletion of Jobs whose time to live is over."""
ALL = (JOB, *NAMES)
NONE: tuple[str, ...] = ()

Pods = Literal["simulated", "process"]
Authorization = Literal["AlwaysAllow", "RBAC"]


class UnknownController(ValueError):
    """There is no controller of this name."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane.

    Everything has a default: ``Shape(name="east")`` is a cluster that runs Jobs on a simulated node.
    """

    name: str = "cluster"
    controllers: tuple[str, ...] = ALL
    pods: Pods = "simulated"
    """Whether containers are only said to run, or their commands really do, as processes of this user."""
    gates: FeatureGates = FeatureGates()
    """Which designs API server and Job controller know."""
    constants: Constants = Constants()
    """The Job controller's."""
    authorization: Authorization = "AlwaysAllow"
    tokens: Mapping[str, User] = {}
    """Bearer tokens, and whose they are."""
    controller_settings: Settings = Settings()
    """How nodes, scheduler and kubelets behave."""
    data: Path | None = None
    """A file that outlives the process; None: everything is in memory."""

    def __post_init__(self) -> None:
        """Look whether all controllers exist.

        Raises:
            UnknownController: one does not.
        """
        for name in self.controllers:
            if name not in ALL:
                raise UnknownController(f"there is no controller {name!r}; there are {', '.join(ALL)}")


def controllers_of(text: str) -> tuple[str, ...]:
    """``job,gc``, ``all`` or ``none`` of a command line; ``all,-job`` leaves one out.

    Raises:
        UnknownController: there is none of this name.
    """
    chosen: list[str] = []
    for part in _parts(text):
        name = part.removeprefix("-")
        if name not in (*ALL, "all", "none"):
            raise UnknownController(f"there is no controller {name!r}; there are {', '.join(ALL)}")
        if part.startswith("-"):
            chosen = [one for one in chosen if one != name]
        else:
            chosen += {"all": list(ALL), "none": []}.get(name, [name])
    return tuple(dict.fromkeys(chosen))


def _parts(text: str) -> Iterable[str]:
    return filter(None, (part.strip() for part in text.split(",")))
