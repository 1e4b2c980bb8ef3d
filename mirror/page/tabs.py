"""A Job's page in tabs: what the manager knows, what is inside the mirror, and what to type. Pure.

Without scripts all tabs stand below each other; ``assets/job.js`` makes tabs of them and asks for what is inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from markupsafe import Markup

from mirror.kinds import registry
from mirror.kinds.registry import Kinds
from mirror.model.keys import SourceKey
from mirror.page.markup import join, tag

TABS = (("timeline", "Timeline"), ("pods", "Pods"), ("logs", "Logs"), ("events", "Events"), ("yaml", "YAML"),
        ("commands", "Commands"))  # fmt: skip
_INSIDE = {"pods": "pods", "logs": "log", "events": "events", "yaml": "manifest"}
_SHOWN_BY = {"pods": ("pods", ""), "logs": ("logs", " -f"), "events": ("events", ""), "yaml": ("diff", "")}


def panels(parts: Mapping[str, Markup], key: SourceKey, kinds: Kinds, *, has_inside: bool) -> Iterator[Markup]:
    """The bar of tabs, and what each holds."""
    story = join(
        tag("ol", parts["timeline"], id="timeline", class_="timeline", data_list=True),
        parts["no-events"],
        parts["elsewhere"],
    )
    shown_by = {name: _run(_command(name, key, kinds), "") for name in _INSIDE}
    contents = {name: _inside(name, by) if has_inside else _outside(by) for name, by in shown_by.items()}
    listed = tag("ul", [tag("li", _run(*one)) for one in commands(key, kinds)], class_="commands")
    contents |= {"timeline": story, "commands": listed}
    buttons = [
        tag(
            "button",
            title,
            type="button",
            role="tab",
            id=f"tab-{name}",
            aria_controls=f"panel-{name}",
            aria_selected="true" if name == "timeline" else "false",
            aria_keyshortcuts=str(number),
        )
        for number, (name, title) in enumerate(TABS, 1)
    ]
    yield tag(
        "div",
        tag("div", *buttons, role="tablist", id="tabs", aria_label="About this object", class_="tabs", hidden=True),
        *(
            tag("section", tag("h2", title), contents[name], id=f"panel-{name}", aria_labelledby=f"tab-{name}")
            for name, title in TABS
        ),
        class_="panels",
    )


def commands(key: SourceKey, kinds: Kinds) -> Iterable[tuple[str, str]]:
    """A command to copy, and what it shows."""
    name, where = quote(_name(key, kinds)), f"-n {quote(key.namespace)}"
    kind = kinds.by_name.get(key.kind)
    resource = registry.resource_name(kind) if kind is not None else key.kind.lower()
    yield f"mirror explain {name} {where}", "what happened, what it waits for, why it is not placed"
    yield f"mirror logs {name} {where} -f", "its logs, whichever worker it is on"
    yield f"mirror pods {name} {where}", "its pods on the worker"
    yield f"mirror events {name} {where}", "events of the mirror and its pods"
    yield f"mirror diff {name} {where}", "what differs between source and mirror"
    yield f"kubectl describe {resource} {quote(key.name)} {where}", "conditions and events on the management cluster"


def _name(key: SourceKey, kinds: Kinds) -> str:
    """What commands call the object: its name alone where it is of the first kind, else with its kind."""
    kind = kinds.by_name.get(key.kind)
    if kind is kinds.default:
        return key.name
    word = key.kind.lower()
    if kind is not None and kinds.named(word) is not kind:
        word = registry.resource_name(kind)
    return f"{word}/{key.name}"


def _inside(name: str, command: Markup) -> Markup:
    """What is requested when the tab is opened; without scripts, the command that shows it."""
    bar = None
    if name == "logs":
        bar = tag(
            "div",
            tag("span", "The newest pod that runs", id="log-of"),
            tag("label", tag("input", type="checkbox", id="log-follow", checked=True), " follow the end"),
            class_="log-bar",
        )
    holder = (
        tag("pre", id="log", tabindex="0", role="log", aria_label="Log")
        if name == "logs"
        else tag("div", id=f"{name}-inside", class_="inside")
    )
    return join(
        bar,
        tag("p", id=f"{name}-problem", class_="nothing", role="status", hidden=True),
        tag("div", holder, data_part=_INSIDE[name]),
        tag("noscript", command),
    )


def _outside(command: Markup) -> Markup:
    """Which command shows it; the page has no right to."""
    return tag("p", "The page cannot show this here (see page.login). Run ", command, class_="nothing")


def _command(name: str, key: SourceKey, kinds: Kinds) -> str:
    command, more = _SHOWN_BY[name]
    return f"mirror {command} {quote(_name(key, kinds))} -n {quote(key.namespace)}{more}"


def _run(command: str, what: str) -> Markup:
    copy = tag("button", "Copy", type="button", data_copy=command, aria_label=f"Copy: {command}", hidden=True)
    return tag(
        "span", tag("code", command), copy, tag("span", what, class_="muted") if what else None, class_="command"
    )
