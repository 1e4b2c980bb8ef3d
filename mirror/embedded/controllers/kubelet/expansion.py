"""``$(NAME)`` in commands, arguments and values of variables, as Kubernetes replaces it; pure."""

from __future__ import annotations

from collections.abc import Mapping


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with variables in place; ``$$`` is a dollar, and what is not known stays as it is."""
    found: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0 and dollar + 1 < len(text):
        found.append(text[position:dollar])
        follower = text[dollar + 1]
        close = text.find(")", dollar) if follower == "(" else -1
        if close >= 0:
            name = text[dollar + 2 : close]
            found.append(variables.get(name, f"$({name})"))
            position = close + 1
        else:
            found.append("$" if follower == "$" else f"${follower}")
            position = dollar + 2
    return "".join(found) + text[position:]
