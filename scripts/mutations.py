"""Small wrong changes of a Python file: what `scripts/mutate.py` chooses from.

A change is a replaced piece of source text. Left alone are docstrings, words (strings, error messages,
warnings), annotations, imports and `__all__`: a change there is no change of behaviour, or not one that a
test should hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("/",),
    ast.Div: ("*",),
    ast.FloorDiv: ("/", "*"),
    ast.Mod: ("*",),
    ast.Pow: ("*",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
SIBLINGS = (
    ("min", "max"),
    ("amin", "amax"),
    ("minimum", "maximum"),
    ("clamp_min", "clamp_max"),
    ("floor", "ceil"),
    ("rint", "floor"),
    ("round", "floor"),
    ("any", "all"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("sum", "mean"),
    ("mean", "median"),
    ("sin", "cos"),
    ("argmin", "argmax"),
    ("relu6", "relu"),
    ("sigmoid", "tanh"),
)
SIBLING = dict(SIBLINGS) | {b: a for a, b in reversed(SIBLINGS)}
"""Functions that are taken for one another."""
STEPS = {
    "clamp",
    "clip",
    "clamp_min",
    "clamp_max",
    "abs",
    "sqrt",
    "square",
    "flip",
    "round",
    "log",
    "exp",
    "sigmoid",
}
"""Methods that can be left out of a chain."""
WORDS = {"warn", "warning", "info", "debug", "print", "echo"}
"""Calls that talk to people."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One replaced piece of a file."""

    line: int
    """First line of the piece, from 1."""
    start: int
    stop: int
    """Bytes of the file that are replaced."""
    text: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutations(source: bytes) -> list[Mutation]:
    """Every change of a file, in order of place."""
    tree = ast.parse(source)
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def piece(node: ast.AST) -> tuple[int, int]:
        at = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return at, starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    found = []
    for node in _behaviour(tree):
        for target, text, kind in _changes(node):
            start, stop = piece(target)
            found.append(Mutation(line=target.lineno, start=start, stop=stop, text=text, kind=kind))  # type: ignore[attr-defined]
    return sorted(found, key=lambda one: (one.start, one.stop, one.text))


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes whose change is a change of behaviour, parents first."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
        return
    if isinstance(node, ast.Call) and _name(node.func) in WORDS:
        return
    if isinstance(node, ast.Assign) and any(_name(target) == "__all__" for target in node.targets):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_params", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _behaviour(child)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """(what to replace, by which text, name of the change)."""
    if isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
        for sign in OPERATORS.get(type(node.op), ()):
            yield node, f"(({ast.unparse(node.left)}) {sign} ({ast.unparse(node.right)}))", "operator"
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        sign = OPERATORS[type(node.op)][0]
        yield node, f"{ast.unparse(node.target)} {sign}= {ast.unparse(node.value)}", "operator"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node, f"({ast.unparse(node.operand)})", "sign or negation dropped"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for sign in COMPARISONS.get(type(node.ops[0]), ()):
            yield (
                node,
                f"(({ast.unparse(node.left)}) {sign} ({ast.unparse(node.comparators[0])}))",
                "comparison",
            )
    elif isinstance(node, ast.BoolOp):
        sign = " or " if isinstance(node.op, ast.And) else " and "
        yield node, f"({sign.join(f'({ast.unparse(value)})' for value in node.values)})", "and / or"
    elif isinstance(node, ast.Constant):
        yield from ((node, text, "constant") for text in _other_constants(node.value))
    elif isinstance(node, ast.IfExp):
        swapped = ast.IfExp(test=node.test, body=node.orelse, orelse=node.body)
        yield node, f"({ast.unparse(swapped)})", "branches swapped"
    elif isinstance(node, ast.If | ast.While):
        yield node.test, f"(not ({ast.unparse(node.test)}))", "condition negated"
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield node, "return None", "return removed"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass", "call removed"
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)


def _changed_calls(node: ast.Call) -> Iterator[tuple[ast.AST, str, str]]:
    name, arguments = _name(node.func), node.args
    plain = not any(isinstance(argument, ast.Starred) for argument in arguments)
    if plain and len(arguments) >= 2 and ast.dump(arguments[0]) != ast.dump(arguments[1]):
        swapped = ast.Call(node.func, [arguments[1], arguments[0], *arguments[2:]], node.keywords)
        yield node, ast.unparse(swapped), "arguments swapped"
    if name in SIBLING:
        called = ast.parse(ast.unparse(node.func), mode="eval").body
        if isinstance(called, ast.Attribute):
            called.attr = SIBLING[name]
        elif isinstance(called, ast.Name):
            called.id = SIBLING[name]
        yield node, ast.unparse(ast.Call(called, arguments, node.keywords)), "another function"
    if name in STEPS and isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
        yield node, f"({ast.unparse(node.func.value)})", "step left out"


def _other_constants(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (str(not value),)
    if isinstance(value, int):
        return (str(value + 1), f"({value - 1})")
    if isinstance(value, float):
        return (repr(value * 2), repr(value / 2)) if value else ("1.0",)
    return ()


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy", "torch", "math", "functional")
