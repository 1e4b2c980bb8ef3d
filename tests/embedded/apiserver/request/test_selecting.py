"""Paths, selectors, options and accepted types: what a request asks for, and the words in which it is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror.batch import label_selectors
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.authz.rules import attributes_of
from mirror.embedded.apiserver.messages import ADMIN, Request
from mirror.embedded.apiserver.request import options
from mirror.embedded.apiserver.request.delete_options import delete_options
from mirror.embedded.apiserver.request.info import action_of, request_info, scope_of
from mirror.embedded.apiserver.request.options import PLAIN, Format, format_of, format_of_errors

ACTIONS = {("pods", "status", "POST"): None, ("pods", "status", "GET"): None, ("pods", "", "POST"): None}
BUILT_IN = Strategy()
BUILT_IN.struct = "Pod"
REGISTRY = Registry()
for group, plural, is_namespaced in (("", "pods", True), ("", "namespaces", False), ("batch", "jobs", True)):
    REGISTRY.add(Kind(group, "v1", plural.title(), plural, BUILT_IN, is_namespaced=is_namespaced))
REGISTRY.add(Kind("x.io", "v1", "Status", "status", Strategy()))
REGISTRY.add(Kind("x.io", "v1", "Thing", "things", Strategy()))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ("pods", "", "", "", False)),
        ("/api/v1/namespaces/n/pods/", ("pods", "n", "", "", False)),
        ("/api/v1/namespaces/n/pods/a%2Eb", ("pods", "n", "a.b", "", False)),
        ("/api/v1/namespaces/n/pods/a/log", ("pods", "n", "a", "log", False)),
        ("/api/v1/namespaces", ("namespaces", "", "", "", False)),
        ("/api/v1/namespaces/n", ("namespaces", "", "n", "", False)),
        ("/api/v1/namespaces/n/finalize", ("namespaces", "", "n", "finalize", False)),
        ("/apis/batch/v1/watch/namespaces/n/jobs/a", ("jobs", "n", "a", "", True)),
        ("/api/v1/namespaces//pods", ("pods", "", "", "", False)),
        ("/apis/x.io/v1/namespaces/n/things/a/b/c", ("things", "n", "a", "b", False)),
        ("/apis/x.io/v1/namespaces/n/status", None),
        ("/apis/x.io/v1/status/n", None),
        ("//api/v1/pods", None),
        ("/apis//v1/pods", None),
        ("/api/v1/proxy/pods", None),
        ("/api/v1/namespaces/n//a", None),
        ("/api/v1/pods/a", None),
        ("/api/v1/namespaces/n/nothings", None),
        ("/api/v1/namespaces/n/namespaces", None),
        ("/api/v1/namespaces/n/pods/a/b/c", None),
        ("/apis/batch/v2/jobs", None),
        ("/apis/batch/v1", None),
        ("/", None),
        ("", None),
        ("/%ff%00", None),
    ],
)
def test_a_path_names(path: str, expected: tuple[str, str, str, str, bool] | None) -> None:
    """A kind, a namespace, a name and a subresource; or nothing."""
    request = Request("GET", path)
    found = scope_of(request, request_info(request), ADMIN, REGISTRY)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        shown = found.kind.plural, found.namespace, found.name, found.subresource, found.is_watch_path
        assert shown == expected


@pytest.mark.parametrize("path", ["/api/v1/watch", "/apis/batch/v1/proxy", "/apis/x.io/v1/watch/"])
def test_a_verb_without_a_resource_is_refused(path: str) -> None:
    """Before anybody asks who it is, as upstream does."""
    with pytest.raises(StatusError) as refused:
        request_info(Request("GET", path))
    assert refused.value.code == 500


def test_a_path_that_is_malformed_is_refused() -> None:
    """Two readers could differ about it."""
    with pytest.raises(StatusError) as refused:
        request_info(Request("GET", "/api/v1/%zz"))
    assert refused.value.code == 400


PARTS = (
    "api",
    "apis",
    "v1",
    "x.io",
    "watch",
    "proxy",
    "namespaces",
    "n",
    "pods",
    "jobs",
    "batch",
    "things",
    "status",
    "",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "get", "WATCH")
PLACES = st.builds(
    lambda *pieces: [part for piece in pieces for part in piece],
    st.sampled_from(([], ["watch"], ["proxy"], ["watch", "watch"])),
    st.sampled_from(([], ["namespaces", "n"], ["namespaces", "watch"])),
    st.sampled_from((["pods"], ["jobs"], ["things"], ["namespaces"], ["status"])),
    st.sampled_from(([], ["n"], ["n", "status"], ["watch", "status"], ["", "status"], ["n", "status", "x"])),
)
"""What is nearly served; parts by chance hardly ever are."""


@given(
    method=st.sampled_from(METHODS),
    start=st.sampled_from(("/api/v1/", "/apis/batch/v1/", "/apis/x.io/v1/", "/", "//api/v1/", "/apis//v1/")),
    parts=PLACES | st.lists(st.sampled_from(PARTS), max_size=6),
    query=st.sampled_from(("", "watch=1", "watch=0", "w%61tch=1", "watch=0&watch=1", "watch=1;")),
)
@example(method="POST", start="/api/v1/", parts=["watch", "namespaces", "n", "pods", "n", "status"], query="")
def test_what_is_served_is_what_was_judged(method: str, start: str, parts: list[str], query: str) -> None:
    """Whatever the path: the verb, and the object in its place, or nothing at all; and no write as a read."""
    request = Request(method, start + "/".join(parts), query)
    try:
        info = request_info(request)
        target = scope_of(request, info, ADMIN, REGISTRY)
        key = None if target is None else action_of(target, ACTIONS)
    except StatusError:
        return
    if target is None:
        return
    judged = attributes_of(info)
    assert (judged.group, judged.resource) == (target.kind.group, target.kind.plural)
    assert (judged.name, judged.subresource) == (target.name, target.subresource)
    assert judged.namespace == target.namespace or (judged.resource, judged.name) == ("namespaces", judged.namespace)
    verb = target.verb
    assert verb in ("", judged.verb)
    if verb in ("get", "list", "watch") and target.kind.strategy.struct:
        assert method == "GET"
    if key is not None:
        assert judged.verb == {"POST": "create", "GET": "get"}[key[2]] or judged.name == ""


@pytest.mark.parametrize(
    ("text", "labels", "is_match"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b,c)", {"a": "c"}, False),
        ("a notin (b,c)", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a=", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("in in (in)", {"in": "in"}, True),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "x"}, False),
        ("a<5,b", {"a": "-1", "b": "x"}, True),
    ],
)
def test_labels_match(text: str, labels: dict[str, str], is_match: bool) -> None:
    """As upstream's selectors do."""
    assert label_selectors.matches(selectors.label_selector(text), labels) is is_match


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b!c", "found '!', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a like b", "unable to parse requirement: found 'like', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
        ),
    ],
)
def test_a_label_selector_is_refused(text: str, message: str) -> None:
    """In upstream's words."""
    with pytest.raises(StatusError, match=r".*") as refused:
        selectors.label_selector(text)
    assert (refused.value.code, refused.value.status["message"]) == (400, message)


@pytest.mark.parametrize("parse", [selectors.label_selector, selectors.field_terms])
def test_a_selector_has_a_bound(parse: Callable[[str], object]) -> None:
    """The same condition again costs nothing; more than a thousand are refused."""
    assert len(parse(",".join(["a=b"] * 5000))) == 1
    assert len(parse(",".join(f"a{number}=b" for number in range(1000)))) == 1000
    with pytest.raises(StatusError, match="more than 1000 conditions"):
        parse(",".join(f"a{number}=b" for number in range(1001)))


def test_fields_are_compared_with_what_is_escaped() -> None:
    """Equal and unequal; commas and backslashes can be written."""
    terms = selectors.field_terms(r"a=b\,c,d!=e\\")
    assert terms == (("a", "b,c", True), ("d", "e\\", False))
    assert selectors.matches_fields(terms, {"a": "b,c", "d": "x"}.__getitem__)
    assert selectors.exact(terms, "a") == "b,c"
    assert selectors.exact(terms, "d") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_a_field_selector_is_refused(text: str, message: str) -> None:
    """In upstream's words."""
    with pytest.raises(StatusError) as refused:
        selectors.field_terms(text)
    assert refused.value.status["message"] == message


def asked(query: str = "", body: bytes = b"", method: str = "GET", **headers: str) -> Request:
    """A request of which only this counts."""
    return Request(method, "/", query, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def test_list_options_are_read() -> None:
    """A watch without a version begins with what is there."""
    plain = options.list_options(asked("limit=5&continue=x&labelSelector=a%3Db"))
    assert (plain.limit, plain.token, plain.is_watch) == (5, "x", False)
    watch = options.list_options(asked("watch=1&resourceVersion=0&timeoutSeconds=3&allowWatchBookmarks="))
    assert watch.is_watch
    assert watch.allows_bookmarks
    assert (watch.sends_initial_events, watch.timeout_seconds) == (True, 3)
    assert options.list_options(asked("watch=false")).is_watch is False


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=99999999999999999999", 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        (
            "resourceVersionMatch=Exact",
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
            "unless resourceVersion is provided",
        ),
        (
            "watch=1&sendInitialEvents=1",
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
    ],
)
def test_list_options_are_refused(query: str, message: str) -> None:
    """In upstream's words."""
    with pytest.raises(StatusError) as refused:
        options.list_options(asked(query))
    assert refused.value.status["message"] == message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=Some", 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: '),
        ("fieldValidation=Hard", 'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Hard"'),
        ("fieldManager=" + "m" * 129, 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be '),
        ("fieldManager=a%0Ab", 'fieldManager: Invalid value: "a\\nb": invalid character U+000A (at position 1)'),
    ],
)
def test_write_options_are_refused(query: str, message: str) -> None:
    """In upstream's words."""
    with pytest.raises(StatusError) as refused:
        options.write_options(asked(query, method="POST"))
    assert message in refused.value.status["message"]


def test_a_manager_is_named_or_is_who_asks() -> None:
    """The user agent up to the first slash, without what cannot be printed."""
    request = Request("POST", "/api/v1/pods", headers={"user-agent": "kube\tctl/v1 (linux)"})
    assert options.manager_of(options.write_options(asked("fieldManager=me")), request) == "me"
    assert options.manager_of(options.write_options(request), request) == "kubectl"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b'{"gracePeriodSeconds": "x"}',
            "cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds",
        ),
        (b"{[", "couldn't get version/kind; json parse error: invalid character '['"),
        (b'{"kind": "Options", "apiVersion": "v1"}', 'no kind "Options" is registered for version "v1"'),
        (
            b'{"propagationPolicy": "x"}',
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value',
        ),
        (b'{"propagationPolicy": "Orphan", "orphanDependents": true}', "cannot be both set"),
        (b"\xff" * 10, ""),
        (b"[" * 100_000, ""),
    ],
)
def test_delete_options_are_refused(body: bytes, message: str) -> None:
    """In upstream's words, whatever the bytes are."""
    with pytest.raises(StatusError) as refused:
        delete_options(asked(body=body, method="DELETE"))
    assert message in refused.value.status["message"]


def test_the_body_of_a_delete_wins_over_its_query() -> None:
    """They are never mixed."""
    found = delete_options(asked("propagationPolicy=Foreground", b'{"gracePeriodSeconds": 3}', "DELETE"))
    assert (found.propagation, found.grace_seconds) == (None, 3)
    assert delete_options(asked("propagationPolicy=Foreground")).propagation == "Foreground"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", PLAIN),
        ("application/json", PLAIN),
        ("application/vnd.kubernetes.protobuf, application/json", PLAIN),
        ("application/json;as=Table;v=v1;g=meta.k8s.io, application/json", Format("Table")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", PLAIN),
        ("application/yaml", Format(is_yaml=True)),
        ("application/yaml;q=0.5, application/json;q=0.9", PLAIN),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Format("PartialObjectMetadata")),
        ("*/*;q=0.1", PLAIN),
    ],
)
def test_an_answer_has_the_form_that_is_wanted(accept: str, expected: Format) -> None:
    """The first acceptable clause, by quality."""
    assert format_of(asked(accept=accept)) == expected


def test_a_form_that_there_is_not_is_refused() -> None:
    """406; and the refusal itself comes in a form that there is."""
    for accept in ("text/plain", "application/json;as=Nothing;g=meta.k8s.io;v=v1"):
        with pytest.raises(StatusError) as refused:
            format_of(asked(accept=accept))
        assert refused.value.code == 406
        assert format_of_errors(asked(accept=accept)) == PLAIN
    assert format_of(asked("pretty=1")).is_pretty
    assert format_of(asked(user_agent="curl/8")).is_pretty
