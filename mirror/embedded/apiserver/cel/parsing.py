"""Reads an expression: tokens, then a tree by precedence. Pure; macros are in ``macros``."""

from __future__ import annotations

import re
from typing import NamedTuple

from mirror.embedded.apiserver.cel import macros, tree
from mirror.embedded.apiserver.cel.times import UInt
from mirror.embedded.apiserver.cel.tree import (
    BadExpression,
    Call,
    Constant,
    Junction,
    ListOf,
    MapOf,
    Name,
    Node,
    Select,
)

_TOKEN = re.compile(
    r"""(?P<space>[\t\n\f\r ]+|//[^\n]*)
    | (?P<text>(?:[bB][rR]?|[rR][bB]?)?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}))
    | (?P<line>(?:[bB][rR]?|[rR][bB]?)?(?:"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'))
    | (?P<number>0x[0-9a-fA-F]+[uU]?|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[uU]?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    | (?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!?:.,()\[\]{}<>])""",
    re.VERBOSE | re.DOTALL,
)
_RAW_TEXT = re.compile(r"""(?:[bB]?[rR]|[rR][bB]?)(?:"{3}.*?"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))
_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
        *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
_BINARY = {"<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_DEEPEST = 48
"""Levels of brackets; upstream's limit of recursion is 250 calls."""
_HIGHEST = 100
"""Levels of a tree."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(text: str) -> Node:
    """The tree of an expression, macros expanded.

    Raises:
        BadExpression: it is none.
    """
    found = _Parser(text).whole()
    if _height(found) > _HIGHEST:
        raise BadExpression(tree.complaint(text, 0, "expression recursion limit exceeded: 250"))
    return found


def _height(root: Node) -> int:
    level, height = [root], 0
    while level and height <= _HIGHEST:
        level = [inner for node in level for inner in tree.children(node)]
        height += 1
    return height


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        raw = _RAW_TEXT.match(text, at)
        match = raw or _TOKEN.match(text, at)
        if match is None:
            shown = text[at]
            raise BadExpression(tree.complaint(text, at, f"Syntax error: token recognition error at: '{shown}'"))
        kind = "text" if raw else str(match.lastgroup)
        if kind != "space":
            found.append(_Token("text" if kind == "line" else kind, match.group(), at))
        at = match.end()
    found.append(_Token("end", "<EOF>", len(text)))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        found = self._expression()
        if self._peek.kind != "end":
            expected = (
                "{<EOF>, '==', '!=', 'in', '<', '<=', '>=', '>', '&&', '||', '[', '.', '-', '?', '+', '*', '/', '%'}"
            )
            words = "extraneous input" if self._next + 1 < len(self._tokens) - 1 else "mismatched input"
            raise self.wrong(self._peek.at, f"Syntax error: {words} '{self._peek.text}' expecting {expected[:7]}")
        return found

    def wrong(self, at: int, words: str) -> BadExpression:
        return BadExpression(tree.complaint(self.text, at, words))

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek
        self._next += 1
        return token

    def _is(self, sign: str) -> bool:
        return self._peek.text == sign and self._peek.kind in ("sign", "name")

    def _accept(self, sign: str) -> _Token | None:
        return self._take() if self._is(sign) else None

    def _expect(self, sign: str) -> _Token:
        if not self._is(sign):
            raise self.wrong(self._peek.at, f"Syntax error: mismatched input '{self._peek.text}' expecting '{sign}'")
        return self._take()

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.wrong(self._peek.at, "expression recursion limit exceeded: 250")
        found = self._junction(is_and=False)
        if mark := self._accept("?"):
            true = self._junction(is_and=False)
            self._expect(":")
            found = Call(mark.at, "_?_:_", (found, true, self._expression()))
        self._depth -= 1
        return found

    def _junction(self, *, is_and: bool) -> Node:
        terms, at = [self._binary(3) if is_and else self._junction(is_and=True)], -1
        while mark := self._accept("&&" if is_and else "||"):
            at = mark.at if at < 0 else at
            terms.append(self._binary(3) if is_and else self._junction(is_and=True))
        return terms[0] if len(terms) == 1 else Junction(at, is_and, tuple(terms))

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while self._peek.kind in ("sign", "name") and _BINARY.get(self._peek.text, 0) >= least:
            mark = self._take()
            right = self._binary(_BINARY[mark.text] + 1)
            left = Call(mark.at, "@in" if mark.text == "in" else f"_{mark.text}_", (left, right))
        return left

    def _unary(self) -> Node:
        marks: list[_Token] = []
        while self._is("!") or self._is("-"):
            marks.append(self._take())
        if marks and marks[-1].text == "-" and self._peek.kind == "number":
            token = self._take()
            found = self._member(self._number(token, "-", marks[-1].at))
            marks.pop()
        else:
            found = self._member(self._primary())
        while marks:
            sign, at = marks[-1].text, marks[-1].at
            count = 0
            while marks and marks[-1].text == sign:
                at = marks.pop().at
                count += 1
            if count % 2:
                found = Call(at, "!_" if sign == "!" else "-_", (found,))
        return found

    def _member(self, found: Node) -> Node:
        while True:
            if mark := self._accept("."):
                is_optional = self._accept("?") is not None
                name = self._take()
                if name.kind not in ("name", "quoted"):
                    raise self.wrong(name.at, f"Syntax error: no viable alternative at input '.{name.text}'")
                if name.kind == "name" and self._is("(") and not is_optional:
                    opened = self._take()
                    arguments = self._list_until(")")
                    found = macros.expand(self, Call(opened.at, name.text, arguments, found))
                else:
                    found = Select(mark.at, found, name.text.strip("`"), is_optional=is_optional)
            elif mark := self._accept("["):
                is_optional = self._accept("?") is not None
                index = self._expression()
                self._expect("]")
                found = Call(mark.at, "_[?_]" if is_optional else "_[_]", (found, index))
            else:
                return found

    def _primary(self) -> Node:
        token = self._take()
        match token.kind, token.text:
            case "number", _:
                return self._number(token, "", token.at)
            case "text", _:
                return Constant(token.at, self._unquoted(token))
            case "name", "true" | "false":
                return Constant(token.at, token.text == "true")
            case "name", "null":
                return Constant(token.at, None)
            case "name", _:
                return self._named(token)
            case "sign", "(":
                found = self._expression()
                self._expect(")")
                return found
            case "sign", "[":
                return self._list(token)
            case "sign", "{":
                return self._map(token)
            case "sign", "." if self._peek.kind == "name":
                return self._named(self._take())
        raise self.wrong(token.at, f"Syntax error: mismatched input '{token.text}' expecting {_STARTS}")

    def _named(self, token: _Token) -> Node:
        if token.text in _RESERVED:
            if token.text == "in":
                words = f"Syntax error: mismatched input 'in' expecting {_STARTS}"
                raise self.wrong(token.at, words)
            raise self.wrong(token.at, f"reserved identifier: {token.text}")
        if opened := self._accept("("):
            return macros.expand(self, Call(opened.at, token.text, self._list_until(")")))
        return Name(token.at, token.text)

    def _list_until(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._is(end):
            found.append(self._expression())
            if not self._accept(","):
                break
        self._expect(end)
        return tuple(found)

    def _list(self, opened: _Token) -> Node:
        found: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._accept("?"):
                optional.add(len(found))
            found.append(self._expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListOf(opened.at, tuple(found), frozenset(optional))

    def _map(self, opened: _Token) -> Node:
        found: list[tuple[Node, Node, bool]] = []
        while not self._is("}"):
            is_optional = self._accept("?") is not None
            key = self._expression()
            self._expect(":")
            found.append((key, self._expression(), is_optional))
            if not self._accept(","):
                break
        self._expect("}")
        return MapOf(opened.at, tuple(found))

    def _number(self, token: _Token, sign: str, at: int) -> Constant:
        text = token.text
        if text[-1:] in "uU":
            value = int(text[:-1], 0) if text.startswith("0x") else _digits(text[:-1])
            if value is None or sign or value >= 2**64:
                raise self.wrong(at, "invalid uint literal")
            return Constant(at, UInt(value))
        if text.startswith("0x") or text.isdigit():
            number = int(sign + text, 16) if text.startswith("0x") else int(sign + text)
            if not -(2**63) <= number < 2**63:
                raise self.wrong(at, "invalid int literal")
            return Constant(at, number)
        return Constant(at, float(sign + text))

    def _unquoted(self, token: _Token) -> str | bytes:
        text = token.text
        prefix = text[: re.match("[bBrR]*", text).end()].lower()  # type: ignore[union-attr]  # it always matches
        text = text[len(prefix) :]
        size = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
        text = text[size:-size].replace("\r\n", "\n").replace("\r", "\n")
        is_bytes = "b" in prefix
        if "r" in prefix:
            return text.encode() if is_bytes else text
        if is_bytes:
            parts = re.split(r"(\\(?:[xX][0-9a-fA-F]{2}|[0-3][0-7]{2}))", text)
            return b"".join(
                bytes([int(part[2:], 16) if part[1] in "xX" else int(part[1:], 8)])
                if position % 2
                else self._unescaped(part, token.at).encode()
                for position, part in enumerate(parts)
            )
        return self._unescaped(text, token.at)

    def _unescaped(self, text: str, at: int) -> str:
        if "\\" not in text:
            return text

        def one(match: re.Match[str]) -> str:
            said = match.group(1)
            if len(said) == 1:
                if said not in _ESCAPED:
                    raise self.wrong(at, "unable to unescape string")
                return _ESCAPED[said]
            code = int(said, 8) if said.isdigit() and len(said) == 3 else int(said[1:], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self.wrong(at, "unable to unescape string")
            return chr(code)

        return _ESCAPE.sub(one, text)


def _digits(text: str) -> int | None:
    return int(text) if text.isdigit() else None
