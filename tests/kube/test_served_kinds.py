"""Whether a server serves a kind, by what it says of itself."""

from __future__ import annotations

import pytest

from mirror.kube.discovery import has_no_subresource, is_creatable, is_served
from mirror.kube.errors import ApiError, BadAnswer, KubeError, NotFound, NotServed, PageNotFound
from mirror.kube.requests import Request
from mirror.kube.resources import PODS, Resource

DRILLS = Resource("example.com", "v1", "drills", "Drill")
LISTED = b'{"kind": "APIResourceList", "resources": [{"name": "drills"}, {"name": "drills/status"}]}'


class Server:
    """Answers one request so."""

    def __init__(self, answer: bytes | KubeError) -> None:
        self.path = ""
        self._answer = answer

    async def send(self, request: Request) -> bytes:
        self.path = request.path
        if isinstance(self._answer, KubeError):
            raise self._answer
        return self._answer


SAID: dict[str, tuple[bytes | KubeError, bool]] = {
    "it is in the list": (LISTED, True),
    "others are": (b'{"resources": [{"name": "pits"}]}', False),
    "nothing is": (b"{}", False),
    "the group is unknown": (PageNotFound("404"), False),
    "the group is unknown, in a Status": (NotServed(404, "NotFound", ""), False),
    "it is not found": (NotFound(404, "NotFound", ""), False),
}


@pytest.mark.parametrize(("answer", "is_so"), SAID.values(), ids=SAID)
async def test_a_kind_is_served_where_the_server_lists_it(answer: bytes | KubeError, is_so: bool) -> None:
    """In the document of its group and version."""
    server = Server(answer)

    assert await is_served(server, DRILLS) is is_so
    assert server.path == "/apis/example.com/v1"


@pytest.mark.parametrize(("verbs", "is_so"), [('["get", "create"]', True), ('["get", "delete"]', False), ("[]", False)])
async def test_a_kind_whose_definition_goes_takes_no_new_objects(verbs: str, is_so: bool) -> None:
    """CR7: it is listed until all its objects are gone."""
    answer = f'{{"resources": [{{"name": "drills", "verbs": {verbs}}}]}}'.encode()

    assert await is_creatable(Server(answer), DRILLS) is is_so
    assert await is_served(Server(answer), DRILLS)


@pytest.mark.parametrize("answer", [b"[", ApiError(500, "InternalError", "")], ids=["junk", "an error"])
async def test_a_server_that_does_not_say_is_no_answer(answer: bytes | KubeError) -> None:
    """Neither yes nor no."""
    with pytest.raises((BadAnswer, ApiError)):
        await is_served(Server(answer), DRILLS)


async def test_the_core_group_has_its_own_place() -> None:
    """As every path of it."""
    server = Server(b'{"resources": [{"name": "pods"}]}')

    assert await is_served(server, PODS)
    assert server.path == "/api/v1"


@pytest.mark.parametrize(
    ("answer", "is_so"),
    [(LISTED, False), (b'{"resources": [{"name": "drills"}]}', True), (PageNotFound("404"), False)],
    ids=["it has one", "it has none", "it is not served itself"],
)
async def test_a_definition_may_have_no_status(answer: bytes | KubeError, is_so: bool) -> None:
    """CR2: then its path answers as if the object was not there."""
    assert await has_no_subresource(Server(answer), DRILLS, "status") is is_so
