"""Expressions of the launch contract (docs/launch-contract.md, "Expressions"), written anew and not from the compiler's sources.

`/` and `%` floor. `&&` and `||` skip their right side where the left one decides. Integers are exact.
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(==|!=|<=|>=|&&|\|\||[-+*/%<>!(),]))")
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))


class ExpressionError(ValueError):
    """The text is no expression, a name has no value, or something is divided by zero."""


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of `text`; a condition is 0 or 1."""
    parser = _Parser(text, values)
    value = parser.level(0, True)
    if parser.peek() is not None:
        raise ExpressionError(f"`{parser.peek()}` stands behind the end of `{text}`")
    return value


def names(text: str) -> set[str]:
    """The names that `text` uses, functions left out."""
    found = {token for token in _tokens(text) if token[0].isalpha() or token[0] == "_"}
    return found - {"ceildiv", "min", "max"}


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"`{text[at:]}` begins with no token of an expression")
        tokens.append(match.group(match.lastindex or 0))
        at = match.end()
    return tokens


class _Parser:
    """Parses and evaluates in one walk; `live` is false where a value is not asked for, and then it is 0."""

    def __init__(self, text: str, values: Mapping[str, int]) -> None:
        self.text, self.values, self.tokens, self.at = text, values, _tokens(text), 0

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if token is None or (expected is not None and token != expected):
            raise ExpressionError(f"`{self.text}`: found {token or 'the end'}, expected {expected or 'an operand'}")
        self.at += 1
        return token

    def level(self, depth: int, live: bool) -> int:
        if depth == len(_LEVELS):
            return self.unary(live)
        left = self.level(depth + 1, live)
        while (operator := self.peek()) in _LEVELS[depth]:
            self.take()
            decided = (operator == "&&" and not left) or (operator == "||" and bool(left))
            right = self.level(depth + 1, live and not decided)
            left = self.apply(str(operator), left, right) if live else 0
        return left

    def apply(self, operator: str, left: int, right: int) -> int:
        if operator in ("/", "%") and right == 0:
            raise ExpressionError(f"`{self.text}` divides by zero")
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left // right
            case "%":
                return left % right
            case "&&":
                return int(bool(left) and bool(right))
            case "||":
                return int(bool(left) or bool(right))
            case "==":
                return int(left == right)
            case "!=":
                return int(left != right)
            case "<":
                return int(left < right)
            case "<=":
                return int(left <= right)
            case ">":
                return int(left > right)
            case _:
                return int(left >= right)

    def unary(self, live: bool) -> int:
        token = self.take()
        if token == "-":
            return -self.unary(live)
        if token == "!":
            return int(not self.unary(live))
        if token == "(":
            value = self.level(0, live)
            self.take(")")
            return value
        if token.isdigit():
            return int(token)
        if token in ("ceildiv", "min", "max") and self.peek() == "(":
            return self.call(token, live)
        if not (token[0].isalpha() or token[0] == "_"):
            raise ExpressionError(f"`{self.text}`: found {token}, expected an operand")
        if not live:
            return 0
        if token not in self.values:
            raise ExpressionError(f"`{self.text}`: no value for `{token}`")
        return int(self.values[token])

    def call(self, function: str, live: bool) -> int:
        self.take("(")
        arguments = [self.level(0, live)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.level(0, live))
        self.take(")")
        if not live:
            return 0
        if function == "min":
            return min(arguments)
        if function == "max":
            return max(arguments)
        if len(arguments) != 2 or arguments[1] == 0:
            raise ExpressionError(f"`{self.text}`: `ceildiv` takes two numbers, the second not zero")
        return -(-arguments[0] // arguments[1])
