"""What a worker has of what pods name, by its answers: classes, claims and limits that no embedded server has."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.going_along import GoingAlong
from mirror.access.looking import LeftOut, Looked, Looking, OnWorker
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person, Reviews
from mirror.kinds.base import Kind, MirrorTransform, StatusSummary
from mirror.kinds.dependencies import RESOURCES, DependencyPolicy, Reference
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, NotFound, Unreachable
from mirror.kube.objects import Object, decode_object
from mirror.kube.permissions import Permission
from mirror.kube.requests import JSON, Request
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.workers.worker import Worker

ANN = Person("ann")


class There:
    """A cluster, and what it answers by path: a worker with a prefix, or the management cluster."""

    def __init__(self, name: str = "east", **answers: Any) -> None:
        self.name = name
        self.answers = {key.replace("__", "/"): value for key, value in answers.items()}
        self.asked: list[str] = []

    def namespace_of(self, namespace: str) -> str:
        return f"p-{namespace}"

    def answer(self, request: Request) -> bytes:
        self.asked.append(request.path)
        for end, answer in self.answers.items():
            if request.path.endswith(f"/{end}"):
                if isinstance(answer, Exception):
                    raise answer
                return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        raise NotFound(404, "NotFound")


class Workers:
    """In place of ``Mirrors``: sends to workers."""

    async def send(self, worker: There, request: Request, person: Person, doing: str) -> bytes:
        return worker.answer(request)


class Management(There):
    """What originals are, and how they are asked for."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("management", **answers)
        self.whole: list[str] = []

    async def send(self, request: Request) -> bytes:
        if request.accept == JSON:
            self.whole.append(request.path)
        return self.answer(request)


@dataclass
class Rights:
    """What the management cluster allows."""

    allowed: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    async def require(self, person: Person, right: Permission) -> None:
        self.asked.append(str(right))
        if right.resource not in self.allowed and f"{right.resource}/{right.name}" not in self.allowed:
            raise StatusError(403, f"missing permission: {right.resource} {right.name}")

    def bound(self, kind: str, whom: str, rate: float, burst: int) -> None:
        """Nothing is."""


@dataclass
class Wanting:
    """A kind whose pods name these."""

    wanted: list[Reference]

    def requirements(self, source: Object) -> list[Reference]:
        return self.wanted

    def references(self, source: Object) -> list[Reference]:
        return [one for one in self.wanted if one.kind in RESOURCES]

    def summary(self, source: Object) -> StatusSummary:
        return StatusSummary(None, is_finished="finished" in source.annotations)


CARRIED = frozenset(RESOURCES)
OURS = {"labels": {names.ORIGIN: "o"}, "annotations": {names.COPY_OF: "u/1"}}


async def looked(
    workers: list[There],
    rights: Rights,
    *wanted: Reference,
    management: Management | None = None,
    allowed: frozenset[str] = CARRIED,
    **annotations: str,
) -> Looked:
    transform = MirrorTransform("o", dependencies=DependencyPolicy(allowed))
    reviews = cast("Reviews", rights)
    along = GoingAlong(cast("Client", management or Management()), reviews, transform.dependencies, Bounds())
    looking = Looking(cast("Mirrors", Workers()), reviews, along, transform)
    metadata = {"name": "train", "namespace": "team", "annotations": annotations}
    source = decode_object(msgspec.json.encode({"metadata": metadata}))
    return await looking.look(cast("list[Worker]", workers), cast("Kind", Wanting(list(wanted))), source, ANN)


async def look(there: There, rights: Rights, *wanted: tuple[str, str]) -> list[OnWorker]:
    return (await looked([there], rights, *(Reference(kind, name, "path") for kind, name in wanted))).on_worker


async def test_classes_are_cluster_wide_and_claims_are_in_the_mirrors_namespace() -> None:
    there = There(high={"metadata": {"name": "high"}}, data={"metadata": {"name": "data"}})
    rights = Rights({"priorityclasses", "runtimeclasses", "persistentvolumeclaims"})
    wanted = ("PriorityClass", "high"), ("RuntimeClass", "gvisor"), ("PersistentVolumeClaim", "data")
    found = await look(there, rights, *wanted)

    assert [(one.object, one.state) for one in found] == [
        ("PriorityClass high", "Exists"),
        ("RuntimeClass gvisor", "Missing"),
        ("PersistentVolumeClaim data", "Exists"),
    ]
    assert there.asked == [
        "/apis/scheduling.k8s.io/v1/priorityclasses/high",
        "/apis/node.k8s.io/v1/runtimeclasses/gvisor",
        "/api/v1/namespaces/p-team/persistentvolumeclaims/data",
    ]
    assert "get persistentvolumeclaims data in team" in rights.asked


RUN = Resource("example.com", "v2", "configmaps", "ConfigMap")


async def test_custom_resources_are_looked_for_where_they_are_served_and_never_go_along() -> None:
    """Whatever their kind is called: one of Kubernetes' own kinds of that name is another object."""
    there = There(**{"example.com/v2/namespaces/p-team/configmaps/settings": {"metadata": {"name": "settings"}}})
    wanted = SETTINGS, Reference("ConfigMap", "settings", "path", resource=RUN)
    found = await looked([there], MAY_ALL, *wanted, management=Management(settings=named()), **CARRY)

    assert [one.object for one in found.goes_along] == ["ConfigMap settings"]
    assert [(one.object, one.state, one.message) for one in found.on_worker] == [
        ("ConfigMap settings", "Missing", "the manager copies it"),
        ("ConfigMap settings", "Exists", ""),
    ]
    assert there.asked == [
        "/api/v1/namespaces/p-team/configmaps/settings",
        "/apis/example.com/v2/namespaces/p-team/configmaps/settings",
    ]


async def test_limit_ranges_are_named_to_who_may_list_them_here() -> None:
    there = There(limitranges={"items": [{"metadata": {"name": f"small-{number}"}} for number in range(9)]})
    assert await look(there, Rights()) == []
    assert there.asked == []
    found = await look(there, Rights({"limitranges"}))
    assert [one.object for one in found] == [f"LimitRange small-{number}" for number in range(5)] + ["more LimitRanges"]


async def test_an_answer_that_makes_no_sense_is_not_known() -> None:
    there = There(high=b"[1,", limitranges=b"7")
    (found,) = await look(there, Rights({"priorityclasses", "limitranges"}), ("PriorityClass", "high"))
    assert (found.state, found.message) == ("Unknown", "the response cannot be decoded")


# -- what goes along ---------------------------------------------------------------------------------------------------

SETTINGS = Reference("ConfigMap", "settings", "path")
CARRY = {names.CARRY: "configmaps,secrets,serviceaccounts"}
MAY_ALL = Rights({"configmaps", "secrets", "serviceaccounts"})


def named(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", **metadata}}


async def test_what_is_missing_here_is_told_from_what_will_be_copied() -> None:
    """D22: by the reason that the Job would have, and with what to do; no worker has either."""
    wanted = SETTINGS, Reference("ConfigMap", "setings", "path"), Reference("Secret", "extra", "path", is_optional=True)
    here = Management(settings=named())
    found = await looked([There()], MAY_ALL, *wanted, management=here, **CARRY)

    assert [(one.object, one.state, one.message) for one in found.goes_along] == [
        ("ConfigMap settings", "Exists", "goes along"),
        (
            "ConfigMap setings",
            "Missing",
            "the Job waits for it (DependencyMissing): create it in namespace team of the management cluster, "
            "or correct its name",
        ),
        ("Secret extra", "Missing", "optional: the Job does not wait for it"),
    ]
    assert [(one.object, one.state, one.message) for one in found.on_worker] == [
        ("ConfigMap settings", "Missing", "the manager copies it"),
        ("ConfigMap setings", "Missing", "nothing to copy: it is missing here"),
        ("Secret extra", "Missing", ""),
    ]
    assert here.asked[0] == "/api/v1/namespaces/team/configmaps/settings"
    assert here.whole == []


async def test_who_may_not_get_it_learns_nothing_of_it_here_either() -> None:
    """D18: nothing is asked for, so that what is there and what is not look the same."""
    here, there = Management(settings=named()), There(settings=named())
    wanted = SETTINGS, Reference("ConfigMap", "absent", "path")
    found = await looked([there], Rights({"secrets"}), *wanted, management=here, **CARRY)

    assert [(one.state, one.message) for one in found.goes_along] == [
        ("Unknown", "missing permission: configmaps settings"),
        ("Unknown", "missing permission: configmaps absent"),
    ]
    assert {one.state for one in found.on_worker} == {"Unknown"}
    assert (here.asked, there.asked) == ([], [])


@pytest.mark.parametrize(
    ("annotations", "allowed"),
    [
        pytest.param({}, CARRIED, id="the user does not ask for it"),
        pytest.param({names.CARRY: "secrets"}, CARRIED, id="for another kind"),
        pytest.param({names.CARRY: "config-maps"}, CARRIED, id="by no word of ours"),
        pytest.param(CARRY, frozenset({"Secret"}), id="the settings do not allow it"),
        pytest.param({**CARRY, "finished": ""}, CARRIED, id="the Job is over"),
    ],
)
async def test_what_does_not_go_along_is_not_looked_for_here(
    annotations: dict[str, str], allowed: frozenset[str]
) -> None:
    """The manager may have no permission to; and what is there is the worker's, as it is."""
    here = Management(settings=named())
    found = await looked([There(settings=named())], MAY_ALL, SETTINGS, management=here, allowed=allowed, **annotations)

    assert found.goes_along == []
    assert here.asked == []
    assert [(one.state, one.message) for one in found.on_worker] == [("Exists", "")]


NOT_OURS = "not ours: used only if its contents are the same, otherwise the worker refuses the Job (DependencyConflict)"


@pytest.mark.parametrize(
    ("reference", "there", "here", "told"),
    [
        pytest.param(SETTINGS, named(**OURS), named(), ("Copied", ""), id="a copy"),
        pytest.param(SETTINGS, named(), named(), ("Foreign", NOT_OURS), id="somebody else's"),
        pytest.param(SETTINGS, named(), None, ("Foreign", NOT_OURS), id="and nothing here, which is waited for"),
        pytest.param(
            SETTINGS, named(annotations=OURS["annotations"]), named(), ("Foreign", NOT_OURS), id="half of our marks"
        ),
        pytest.param(
            SETTINGS,
            named(**{**OURS, "labels": {names.ORIGIN: "p"}}),
            named(),
            ("Foreign", NOT_OURS),
            id="another's copy",
        ),
        pytest.param(
            Reference("ServiceAccount", "settings", "path"),
            named(),
            named(),
            ("Foreign", "not ours: used as it is"),
            id="a ServiceAccount",
        ),
        pytest.param(
            Reference("Secret", "settings", "path", is_optional=True),
            named(),
            None,
            ("Foreign", "not ours: used as it is"),
            id="optional, and nothing here that would go along",
        ),
    ],
)
async def test_what_a_worker_has_of_its_own_is_told_from_copies(
    reference: Reference, there: Any, here: Any, told: tuple[str, str]
) -> None:
    """As ``decide.dependencies.identify_copy`` judges it once the Job is sent, as far as metadata goes."""
    management = Management(**({"settings": here} if here else {}))
    found = await looked([There(settings=there)], MAY_ALL, reference, management=management, **CARRY)

    assert [(one.state, one.message) for one in found.on_worker] == [told]


ACCOUNT = Reference("ServiceAccount", "builder", "path")
BUILDER = named(name="builder") | {"imagePullSecrets": [{"name": "registry"}, {"name": "settings"}, {"name": "../x"}]}


async def test_image_pull_secrets_of_an_account_that_goes_along_are_looked_for() -> None:
    """They go with it, whether or not the annotation names secrets; pods run without one that is missing."""
    here = Management(builder=BUILDER, registry=named())
    wanted = ACCOUNT, Reference("Secret", "settings", "path")
    found = await looked([There()], MAY_ALL, *wanted, management=here, **{names.CARRY: "serviceaccounts"})

    assert [(one.object, one.state, one.message) for one in found.goes_along] == [
        ("ServiceAccount builder", "Exists", "goes along"),
        ("Secret settings", "Missing", "optional: the Job does not wait for it"),
        ("Secret registry", "Exists", "goes along, as an image pull secret of ServiceAccount builder"),
        ("Secret ../x", "Missing", "optional: the Job does not wait for it"),
    ]
    assert [one.object for one in found.on_worker] == ["ServiceAccount builder", "Secret settings", "Secret registry"]
    assert here.whole == ["/api/v1/namespaces/team/serviceaccounts/builder"]


async def test_names_of_pull_secrets_are_for_who_may_get_the_account() -> None:
    """And whether one exists, for who may get that one."""
    here = Management(builder=BUILDER, registry=named())
    nothing = await looked([There()], Rights({"secrets"}), ACCOUNT, management=here, **CARRY)
    assert [one.object for one in nothing.goes_along] == ["ServiceAccount builder"]
    assert here.asked == []

    rights = Rights({"serviceaccounts", "secrets/registry"})
    names_only = await looked([There()], rights, ACCOUNT, management=here, **CARRY)
    assert {one.object: one.state for one in names_only.goes_along} == {
        "ServiceAccount builder": "Exists",
        "Secret registry": "Exists",
        "Secret settings": "Unknown",
        "Secret ../x": "Missing",
    }


async def test_pull_secrets_that_stay_here_are_looked_for_on_the_worker_alone() -> None:
    """The settings allow ServiceAccounts and no Secrets: the copy of the account names them all the same."""
    here = Management(builder=BUILDER, registry=named())
    allowed = frozenset({"ServiceAccount"})
    found = await looked([There(registry=named())], MAY_ALL, ACCOUNT, management=here, allowed=allowed, **CARRY)

    assert [one.object for one in found.goes_along] == ["ServiceAccount builder"]
    assert {one.object: (one.state, one.message) for one in found.on_worker} == {
        "ServiceAccount builder": ("Missing", "the manager copies it"),
        "Secret registry": ("Exists", ""),
        "Secret settings": ("Missing", ""),
    }


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(
            named(labels={names.WORKER: "true"}),
            ("Refused", "ConfigMap settings registers a worker, and is never copied (DependencyRefused)"),
            id="what never leaves",
        ),
        pytest.param(b"[1,", ("Unknown", "it cannot be read on the management cluster now"), id="no object"),
        pytest.param(
            Forbidden(403, "Forbidden"),
            (
                "Unknown",
                "the manager has no permission to get configmaps on the management cluster (DependencyRefused)",
            ),
            id="a permission of the manager's is missing",
        ),
        pytest.param(
            Unreachable("no"), ("Unknown", "it cannot be read on the management cluster now"), id="nobody answers"
        ),
        pytest.param(TimeoutError(), ("Unknown", "it cannot be read on the management cluster now"), id="not in time"),
    ],
)
async def test_what_cannot_go_along_or_be_looked_at_is_no_failure(answer: Any, told: tuple[str, str]) -> None:
    """The rest of the comparison is answered."""
    found = await looked([There()], MAY_ALL, SETTINGS, management=Management(settings=answer), **CARRY)
    assert [(one.state, one.message) for one in found.goes_along] == [told]


@pytest.mark.looptime
async def test_a_cluster_that_hangs_costs_the_time_of_one_answer() -> None:
    """Whatever the Job names, and the workers are looked at all the same."""

    class Hanging(Management):
        async def send(self, request: Request) -> bytes:
            await asyncio.sleep(3600)
            return b""

    wanted = [Reference("ConfigMap", f"c{number}", "path") for number in range(9)]
    began = asyncio.get_running_loop().time()
    found = await looked([There(c0=named())], MAY_ALL, *wanted, management=Hanging(), **CARRY)

    assert {one.state for one in found.goes_along} == {"Unknown"}
    assert found.on_worker[0].state == "Foreign"
    assert asyncio.get_running_loop().time() - began == pytest.approx(Bounds().answer_seconds)


async def test_what_is_not_looked_at_is_counted() -> None:
    """D29: 30 objects and three workers, pull secrets among them; the others are numbers."""
    pull_secrets = [{"name": f"s{number}"} for number in range(9)]
    here = Management(builder=named(name="builder") | {"imagePullSecrets": pull_secrets})
    wanted = [ACCOUNT, *(Reference("ConfigMap", f"c{number}", "path") for number in range(24))]
    workers = [There(f"w{number}") for number in range(5)]
    found = await looked(workers, MAY_ALL, *wanted, *wanted, management=here, **CARRY)

    assert found.left_out == LeftOut(objects=1 + 24 + 9 - 30, workers=2)
    assert len(found.goes_along) == 30
    assert len(here.asked) == 30
    assert len(found.on_worker) == 3 * 30

    others = (Reference("PersistentVolumeClaim", f"p{number}", "path") for number in range(24))
    here = Management(**here.answers)
    mixed = await looked([], MAY_ALL, ACCOUNT, *others, management=here, **CARRY)
    assert mixed.left_out.objects == 1 + 24 + 9 - 30
    assert len(here.asked) == len(mixed.goes_along) == 6
    few = await looked(workers[:3], MAY_ALL, *wanted[:2], management=Management(), **CARRY)
    assert few.left_out == LeftOut()


async def test_more_than_may_go_along_is_told_before() -> None:
    """It would be refused as a whole."""
    wanted = [Reference("ConfigMap", f"c{number}", "path") for number in range(51)]
    found = await looked([], MAY_ALL, *wanted, **CARRY)

    assert (found.goes_along[-1].object, found.goes_along[-1].state) == ("51 objects", "Refused")
    assert "more than 50 objects" in found.goes_along[-1].message
    assert found.left_out.objects == 21
