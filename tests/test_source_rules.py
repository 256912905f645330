"""Rules that the source keeps: settings are read, words are taken once, random states are left alone."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator

from source_files import ROOT, parsed

CONFIGURATIONS = {
    "How",
    "KittiAugmentation",
    "Machine",
    "ModelConfig",
    "NyuAugmentation",
    "OneCycle",
    "Pipeline",
    "Plan",
    "Recipe",
    "Request",
    "Setting",
    "SigmaCheckSettings",
    "Start",
    "VariedAugmentation",
}
"""Classes whose fields are settings: one that nothing reads would silently do nothing."""

CHECKS_AND_COPIES = {"__post_init__", "scaled"}
"""Methods of a configuration that look at its fields without obeying them."""


def named_after(trees: list[ast.Module], classes: set[str]) -> dict[str, set[str]]:
    """By class: names of variables, attributes and functions that hold or give one, as annotations tell."""
    names: dict[str, set[str]] = {name: set() for name in classes}

    def note(name: str, annotation: ast.expr | None) -> None:
        for part in ast.walk(annotation) if annotation else ():
            if isinstance(part, ast.Name) and part.id in classes:
                names[part.id].add(name)

    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.arg):
            note(node.arg, node.annotation)
        elif isinstance(node, ast.FunctionDef):
            note(node.name, node.returns)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made = node.value.func if isinstance(node.value, ast.Call) else None
            for target in targets:
                if isinstance(target, ast.Name | ast.Attribute):
                    own = target.id if isinstance(target, ast.Name) else target.attr
                    note(own, node.annotation if isinstance(node, ast.AnnAssign) else made)
    return names


def reads(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(last name before the dot, attribute) of everything that is read."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            holder = part.value.func if isinstance(part.value, ast.Call) else part.value
            if isinstance(holder, ast.Name | ast.Attribute):
                yield (holder.id if isinstance(holder, ast.Name) else holder.attr), part.attr


def unread_fields(trees: list[ast.Module], classes: set[str]) -> list[str]:
    """`Class.field` of the annotated fields that no code reads from something that holds such a class."""
    holders = named_after(trees, classes)
    everywhere = {read for tree in trees for read in reads(tree)}
    unread = []
    for owner in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if owner.name not in classes:
            continue
        methods = [part for part in owner.body if isinstance(part, ast.FunctionDef)]
        obeyed = {
            read for method in methods if method.name not in CHECKS_AND_COPIES for read in reads(method)
        }
        for part in owner.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                field = part.target.id
                ways = {(holder, field) for holder in holders[owner.name]}
                if not ways & everywhere and ("self", field) not in obeyed:
                    unread.append(f"{owner.name}.{field}")
    return unread


def test_every_setting_is_read() -> None:
    trees = list(parsed().values())
    found = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    assert found >= CONFIGURATIONS, f"no such class any more: {sorted(CONFIGURATIONS - found)}"
    assert not unread_fields(trees, CONFIGURATIONS)


def test_a_setting_that_nothing_reads_is_found() -> None:
    """Reading the same name from something else does not count."""
    code = """
class Start:
    used: int
    forgotten: int
    checked: int
    def __post_init__(self): assert self.checked
def begin(start: Start, other): return start.used + other.forgotten
"""
    assert unread_fields([ast.parse(code)], {"Start"}) == ["Start.forgotten", "Start.checked"]


OWN_GENERATORS = {"Generator", "RandomState", "SeedSequence", "default_rng"}
"""Names of numpy.random that make a generator of one's own."""
DRAWS = {
    *("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like"),
    *("randn", "randn_like", "randperm"),
}
"""Functions of torch that draw; `generator=` keeps them away from the global state."""
DRAWS_IN_PLACE = {
    *("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"),
    *("kaiming_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_", "xavier_normal_"),
    "xavier_uniform_",
}
STATE = {"fork_rng", "manual_seed", "manual_seed_all", "seed", "set_rng_state"}

GLOBAL_RANDOM_STATE = {
    # Untrained networks start from torch's generator, as torch's own layers do.
    "network/blocks.py": {"trunc_normal_", "bernoulli_"},  # … and drop path draws from it, in training only
    "network/efficientnet.py": {"kaiming_normal_"},
    "network/unit.py": {"trunc_normal_"},
    # A training run owns its process: it seeds the start, and every step by (seed, step).
    "train/loop.py": {"torch.manual_seed"},
    # Seeded inside, and as it was afterwards.
    "bench/model.py": {"torch.random.fork_rng", "torch.manual_seed"},
    "gbp/exact/solvers.py": {"np.random.get_state", "np.random.seed", "np.random.set_state"},
}
"""Which files may touch a global random state, by what; docs/conventions.md says the same in words."""


def global_randomness(tree: ast.Module) -> set[str]:
    """Calls that draw from, or set, a random state that the whole process shares."""
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, last = ast.unparse(node.func), node.func.attr
        own = any(keyword.arg == "generator" for keyword in node.keywords)
        if name.startswith(("np.random.", "numpy.random.")):
            shared = last not in OWN_GENERATORS
        elif re.match(r"torch\.[\w.]+$", name):
            shared = last in STATE or (last in DRAWS and not own)
        else:
            shared = name.startswith("random.") and "random" in modules
        if shared:
            found.add(name)
        elif last in DRAWS_IN_PLACE and not own:
            found.add(last)
    return found


def test_global_random_states_are_left_alone() -> None:
    found = {name: calls for name, tree in parsed().items() if (calls := global_randomness(tree))}
    assert found == GLOBAL_RANDOM_STATE


def test_global_randomness_is_found() -> None:
    code = """
import random, numpy as np, torch
random.random(); np.random.rand(3); torch.rand(2); x.normal_(); torch.manual_seed(0)
torch.rand(2, generator=g); torch.Generator().manual_seed(0); np.random.default_rng(0); rng.random()
"""
    found = {"random.random", "np.random.rand", "torch.rand", "normal_", "torch.manual_seed"}
    assert global_randomness(ast.parse(code)) == found


PRIVATE = {
    "gbp/scan.py": {"_higher_order_ops"},  # tests/gbp/test_scan.py
    "network/convolution.py": {  # tests/network/test_convolution.py
        "_convolution_pointwise",
        "_convolution_transpose_pointwise",
    },
    "train/averaging.py": {"_foreach_add_", "_foreach_mul_"},  # tests/train/test_parts.py
}
"""Private names of other packages in use. Each has a guard, with a plain way or an error without it, and a
test that takes it away."""


def test_private_names_of_other_packages_are_few_and_guarded() -> None:
    trees = parsed()
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    own = {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    own |= {"_asdict", "_fields", "_replace"}  # documented parts of named tuples
    own |= {"_native"}  # ours, compiled
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            attribute: object = None
            if isinstance(node, ast.Attribute):
                attribute = node.attr
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 1:
                given = node.args[1]
                attribute = given.value if isinstance(given, ast.Constant) else None
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "gbpn":
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                private = [part for part in names if part.startswith("_") and not part.startswith("__")]
                attribute = private[0] if private else None
            if isinstance(attribute, str) and re.match(r"_[^_]", attribute) and attribute not in own:
                found.setdefault(name, set()).add(attribute)
    assert found == PRIVATE


RULE_OF_VALIDITY = ("validity.py", "studio/")
"""Where "is this pixel measured" may be written out; others ask `gbpn.measurements.validity.measured`."""


def own_rules_of_validity(tree: ast.Module) -> list[str]:
    """Comparisons that decide by themselves whether pixels of sparse depth or of a target are measured."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.comparators[0], ast.Constant):
            continue
        left: ast.AST = node.left
        while isinstance(left, ast.Subscript | ast.Call | ast.Attribute):
            if isinstance(left, ast.Attribute) and left.attr not in ("numpy", "cpu"):
                break
            left = left.func if isinstance(left, ast.Call) else left.value
        name = left.attr if isinstance(left, ast.Attribute) else getattr(left, "id", "")
        if name in ("sparse", "target") and isinstance(node.ops[0], ast.Gt | ast.GtE | ast.NotEq):
            found.append(ast.unparse(node))
    return found


def test_one_rule_says_what_is_measured() -> None:
    found = {
        name: rules
        for name, tree in parsed().items()
        if not name.startswith(RULE_OF_VALIDITY) and (rules := own_rules_of_validity(tree))
    }
    assert not found


def test_a_second_rule_of_validity_is_found() -> None:
    code = (
        "a = sample.sparse[0].numpy() > 1e-3; b = target[known] != 0; c = x.target is not None; d = depth > 0"
    )
    assert own_rules_of_validity(ast.parse(code)) == [
        "sample.sparse[0].numpy() > 0.001",
        "target[known] != 0",
    ]


TWINS = {"DepthCompleter", "DepthUnit", "SigmaCalibration"}
"""Classes that `gbpn.runtime` has again, without torch."""


def test_a_class_name_is_taken_once() -> None:
    places = defaultdict(list)
    for name, tree in parsed().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert set(twice) == TWINS
    assert all(sum(where.startswith("runtime/") for where in twice[name]) == 1 for name in TWINS)


def configurations_set(tree: ast.Module) -> list[int]:
    """Lines that change the configuration of something that is made already."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "config"
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]


def test_the_configuration_of_a_model_is_never_changed_from_outside() -> None:
    assert not {file: lines for file, tree in parsed().items() if (lines := configurations_set(tree))}
    assert configurations_set(ast.parse("model.config = other\nself.network.config = other")) == [1, 2]


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of every import from the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gbpn":
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_scripts_import_what_there_is() -> None:
    """Scripts are run now and then only; a name that moved must not wait for that."""
    for place in sorted((*(ROOT / "scripts").rglob("*.py"), *(ROOT / "examples").rglob("*.py"))):
        for module, name in _imported(ast.parse(place.read_text(encoding="utf-8"))):
            known = hasattr(importlib.import_module(module), name)
            assert known or importlib.util.find_spec(f"{module}.{name}"), f"{place.name}: {module}.{name}"
