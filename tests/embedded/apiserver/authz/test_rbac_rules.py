"""What a rule allows, what rules hold of others, how both are told, and what a path means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.authz import rules
from mirror.embedded.apiserver.authz.rules import FULL, Attributes, Rule, TooManyParts, allows, described, missing
from mirror.embedded.apiserver.messages import Request, User
from mirror.embedded.apiserver.request.info import request_info

PODS = Rule(verbs=("get", "list"), api_groups=("",), resources=("pods",))
LOGS = Rule(verbs=("get",), api_groups=("",), resources=("*/log",))
NAMED = Rule(verbs=("*",), api_groups=("batch",), resources=("jobs",), resource_names=("a", "b"))
URLS = Rule(verbs=("get",), non_resource_urls=("/healthz", "/api/*"))


@pytest.mark.parametrize(
    ("is_allowed", "rule", "wanted"),
    [
        (True, PODS, Attributes("get", "", "pods", name="a")),
        (False, PODS, Attributes("watch", "", "pods")),
        (False, PODS, Attributes("get", "batch", "pods")),
        (False, PODS, Attributes("get", "", "pods", "log")),
        (True, LOGS, Attributes("get", "", "pods", "log")),
        (False, LOGS, Attributes("get", "", "log")),
        (True, NAMED, Attributes("delete", "batch", "jobs", name="b")),
        (False, NAMED, Attributes("delete", "batch", "jobs", name="c")),
        (False, NAMED, Attributes("create", "batch", "jobs")),
        (True, URLS, Attributes("get", path="/api/v1")),
        (True, URLS, Attributes("get", path="/healthz")),
        (False, URLS, Attributes("get", path="/healthz/ping")),
        (False, URLS, Attributes("get", "", "pods")),
        (False, FULL[0], Attributes("get", path="/x")),
        (True, FULL[1], Attributes("get", path="/x")),
    ],
)
def test_a_rule_allows(is_allowed: bool, rule: Rule, wanted: Attributes) -> None:
    """Verb, group, resource and name must all be in it."""
    assert is_allowed == allows(rule, wanted)


def test_what_is_missing_is_told_by_resource() -> None:
    """Each part that no held rule has, those of one resource in one line, lines in order."""
    given = [
        Rule(verbs=("get", "delete"), api_groups=("",), resources=("pods", "secrets")),
        Rule(verbs=("get",), non_resource_urls=("/metrics",)),
        Rule(verbs=("get",), api_groups=("batch",), resources=("jobs",), resource_names=("a", "c")),
    ]
    assert described(missing([PODS, NAMED, URLS], given)) == (
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}\n'
        '{APIGroups:["batch"], Resources:["jobs"], ResourceNames:["c"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


def test_who_has_everything_misses_nothing() -> None:
    """Of any rules, and everything is more than any rule."""
    assert not missing(FULL, [PODS, LOGS, NAMED, URLS, *FULL])
    assert missing([PODS, URLS], FULL)


def test_rules_for_names_do_not_hold_rules_for_all() -> None:
    """The other way round they do."""
    for_all = Rule(verbs=("*",), api_groups=("batch",), resources=("jobs",))
    assert missing([NAMED], [for_all])
    assert not missing([for_all], [NAMED])


@pytest.mark.parametrize(
    ("method", "path", "query", "wanted"),
    [
        ("GET", "/", "", Attributes("get", path="/")),
        ("POST", "/version", "", Attributes("post", path="/version")),
        ("GET", "/api/v1", "", Attributes("get", path="/api/v1")),
        ("GET", "/apis/batch/v1", "", Attributes("get", path="/apis/batch/v1")),
        ("GET", "/api/v1/pods", "", Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods", "watch=true", Attributes("watch", "", "pods")),
        ("GET", "/api/v1/pods", "watch=0", Attributes("list", "", "pods")),
        ("GET", "/api/v1/watch/pods", "", Attributes("watch", "", "pods")),
        ("GET", "/api/v1/namespaces", "", Attributes("list", "", "namespaces")),
        ("GET", "/api/v1/namespaces/a", "", Attributes("get", "", "namespaces", namespace="a", name="a")),
        ("PUT", "/api/v1/namespaces/a/finalize", "", Attributes("update", "", "namespaces", "finalize", "a", "a")),
        ("GET", "/api/v1/namespaces/a/pods/b/log", "", Attributes("get", "", "pods", "log", "a", "b")),
        ("DELETE", "/apis/batch/v1/namespaces/a/jobs", "", Attributes("deletecollection", "batch", "jobs", "", "a")),
        ("DELETE", "/apis/batch/v1/namespaces/a/jobs/b", "", Attributes("delete", "batch", "jobs", "", "a", "b")),
        ("PATCH", "/apis/x/v1/things/b", "", Attributes("patch", "x", "things", name="b")),
        ("POST", "/apis/x/v1/namespaces/a/things", "", Attributes("create", "x", "things", "", "a")),
        (
            "GET",
            "/api/v1/namespaces/a/pods",
            "fieldSelector=metadata.name%3Db&watch=1",
            Attributes("watch", "", "pods", "", "a", "b"),
        ),
    ],
)
def test_a_request_wants(method: str, path: str, query: str, wanted: Attributes) -> None:
    """What kube-apiserver makes of method and path, whether or not it is served."""
    assert wanted == rules.attributes_of(request_info(Request(method, path, query)))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Attributes("get", "batch", "jobs", "status", "ns", "a"),
            'jobs.batch "a" is forbidden: User "jane" cannot get resource "jobs/status" in API group "batch" '
            'in the namespace "ns": why',
        ),
        (
            Attributes("list", "", "nodes"),
            'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope: why',
        ),
        (Attributes("get", path="/a<b>&c"), 'forbidden: User "jane" cannot get path "/a&lt;b&gt;&amp;c": why'),
    ],
)
def test_a_refusal_is_worded(wanted: Attributes, message: str) -> None:
    """As kube-apiserver has it."""
    refused = rules.refusal(User("jane"), wanted, "why")
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert message == refused.status["message"]


def many(what: str, number: int) -> tuple[str, ...]:
    return tuple(f"{what}{one}" for one in range(number))


def test_rules_are_not_taken_apart_without_bound() -> None:
    """A rule of a few KiB has as many parts as the product of its lists: a thousand million would keep all waiting."""
    cube = Rule(verbs=many("v", 1000), api_groups=many("g", 1000), resources=many("r", 1000))
    with pytest.raises(TooManyParts):
        missing([PODS], [cube])
    with pytest.raises(TooManyParts):
        missing([PODS], [Rule(verbs=many("v", 10), non_resource_urls=many("/", 1000))] * 2)
    assert missing(FULL, [cube]) == []
    assert missing([PODS, cube], [cube]) == []


def test_rules_are_compared_with_those_about_the_same() -> None:
    """Who has many rights and gives many."""
    asked = 0

    class Counting(tuple[str, ...]):
        __slots__ = ()

        def __contains__(self, one: object) -> bool:
            nonlocal asked
            asked += 1
            return super().__contains__(one)

    held = [Rule(verbs=Counting(("get",)), api_groups=("",), resources=(name,)) for name in many("r", 3000)]
    assert missing(held, [Rule(verbs=("get",), api_groups=("",), resources=(name,)) for name in many("r", 3000)]) == []
    assert asked == 3000


RULES = st.builds(
    Rule,
    verbs=st.lists(st.sampled_from(("get", "list", "*")), min_size=1, max_size=2).map(tuple),
    api_groups=st.lists(st.sampled_from(("", "batch", "*")), min_size=1, max_size=2).map(tuple),
    resources=st.lists(st.sampled_from(("pods", "pods/log", "jobs", "*/log", "*")), min_size=1, max_size=2).map(tuple),
    resource_names=st.lists(st.sampled_from(("a", "b")), max_size=2).map(tuple),
)
WANTED = [
    Attributes(verb, group, resource, subresource, "", name)
    for verb in ("get", "list", "delete")
    for group in ("", "batch", "apps")
    for resource in ("pods", "jobs")
    for subresource in ("", "log", "status")
    for name in ("", "a", "c")
]


@given(st.lists(RULES, max_size=3), RULES)
def test_rules_that_miss_nothing_allow_everything(held: list[Rule], given_rule: Rule) -> None:
    """Whoever is found to have a rule's rights may do all that the rule allows: nothing is given away by mistake."""
    if missing(held, [given_rule]):
        return
    for wanted in WANTED:
        if allows(given_rule, wanted):
            assert any(allows(rule, wanted) for rule in held)
