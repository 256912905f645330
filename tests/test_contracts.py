"""Promises about the whole package: layers, public names, the command line, versions, and clean files."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gbpn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "gbpn"

LAYERS = {
    "ground": (
        "atomic_files",
        "backends",
        "border",
        "camera",
        "checkerboard",
        "colour",
        "contained_paths",
        "errors",
        "gaussian",
        "held_out",
        "lens",
        "repeating",
        "tensor_checks",
        "triton_launch",
        "validity",
    ),
    "boxes": ("config", "depth_unit", "distribution", "mrf", "padding", "sample"),
    "workers": (
        "areas",
        "baselines",
        "formats",
        "gbp",
        "gmcn",
        "losses",
        "metrics",
        "outliers",
        "sensors",
        "show",
        "sigma_check",
        "synthetic",
        "weights",
    ),
    "supplies": ("augmentation", "datasets", "recordings", "scenes"),
    "whole": ("cost", "loading", "model", "pipeline"),
    "uses": ("bench", "evaluate", "export", "predict", "runtime", "train"),
    "doors": ("cli", "studio"),
}
"""From the bottom up. A module imports lower layers only; a new one finds its place here and in
docs/architecture.md."""

PUBLIC = {
    "GBPN",
    "MRF",
    "CompletedDepth",
    "DepthCompleter",
    "DepthDistribution",
    "Gaussian",
    "GbpnError",
    "Inference",
    "Live",
    "LocalEdges",
    "Messages",
    "NonLocalEdges",
    "Sample",
    "SymmetricEdges",
    "build",
    "infer",
    "load",
    "project",
}
"""What `import gbpn` promises; changing it is a change of the interface and belongs into the changelog."""

HEAVY = {
    "triton", "h5py", "lightning_fabric", "pyamg", "matplotlib", "tensorboard", "typer", "onnx", "cv2",
    "fastapi", "uvicorn", "websockets", "yaml", "rosbags", "av",
}  # fmt: skip
"""Packages that `import gbpn` must not load."""


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    """The module or folder directly under `gbpn` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_units(path: Path) -> Iterator[str]:
    """Units of `gbpn` that a file imports, wherever in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inside = node.module == "gbpn"
            names = [f"gbpn.{alias.name}" for alias in node.names] if inside else [node.module or ""]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "gbpn" and len(parts) > 1 and parts[1] != "_native":
                yield parts[1]


def test_every_module_has_its_layer() -> None:
    known = {name for names in LAYERS.values() for name in names}
    found = {unit(path) for path in sources()} - {"__init__", "__main__"}
    assert found == known, f"LAYERS and the folders differ in {sorted(found ^ known)}"


def test_the_documented_layers_are_these() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\w+) \| (.+?) \| .+ \|$", text.split("## Layers")[1].split("## ")[0], re.MULTILINE
    )
    documented = {name: set(re.findall(r"`(\w+)/?`", modules)) for name, modules in rows if name in LAYERS}
    assert documented == {name: set(modules) for name, modules in LAYERS.items()}


def test_imports_point_down_and_workers_do_not_know_each_other() -> None:
    level = {name: i for i, names in enumerate(LAYERS.values()) for name in names}
    workers = set(LAYERS["workers"])
    wrong = []
    for path in sources():
        own = unit(path)
        if own not in level:
            continue
        for other in set(imported_units(path)) - {own}:
            if other not in level:
                continue  # a name of gbpn/__init__.py, caught by the next test
            sideways = own in workers and other in workers
            if level[other] > level[own] or sideways:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert not wrong, wrong


def test_modules_import_from_where_things_live() -> None:
    """Not from the package's front, which would hide the layer and make import circles."""
    level = {name for names in LAYERS.values() for name in names}
    for path in sources():
        if unit(path) in ("__init__", "cli", "studio"):
            continue
        for other in imported_units(path):
            assert other in level or other == "__version__", (
                f"{path.relative_to(PACKAGE)} imports gbpn.{other}"
            )


def test_no_import_circle_between_units() -> None:
    """Imports inside functions count too: a hidden circle is still one."""
    graph: dict[str, set[str]] = {}
    for path in sources():
        graph.setdefault(unit(path), set()).update(set(imported_units(path)) - {"__version__"})
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name in done:
            return
        for other in graph.get(name, set()) - {name}:
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


CONFIGURATIONS = {
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


def parsed() -> dict[str, ast.Module]:
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in sources()}


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
    "gmcn/blocks.py": {"trunc_normal_", "bernoulli_"},  # … and drop path draws from it, in training only
    "gmcn/efficientnet.py": {"kaiming_normal_"},
    "gmcn/unit.py": {"trunc_normal_"},
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
    "gmcn/fused_convolution.py": {"_convolution_pointwise"},  # tests/gmcn/test_fused_convolution.py
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


def test_public_names() -> None:
    assert set(gbpn.__all__) == PUBLIC
    assert len(set(gbpn.__all__)) == len(gbpn.__all__)
    for name in gbpn.__all__:
        assert getattr(gbpn, name).__doc__, f"gbpn.{name} has no docstring"


def top_level_names(tree: ast.Module) -> Iterator[str]:
    """Functions, classes and values that a module defines itself."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name))


def test_what_is_not_exported_looks_private() -> None:
    """A name without an underscore is in its module's `__all__`; the front's `__all__` is what users get."""
    wrong = []
    for path in sources():
        if path.name in ("__init__.py", "__main__.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = set(top_level_names(tree))
        exported = {
            constant.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for constant in ast.walk(node.value)
            if isinstance(constant, ast.Constant)
        }
        looks_public = {name for name in names if not name.startswith("_")}
        wrong += [f"{path.relative_to(PACKAGE)}: {name}" for name in sorted(looks_public - exported)]
    assert not wrong, wrong


def test_import_is_light() -> None:
    """Neither heavy packages nor the command line are loaded before they are asked for."""
    code = (
        "import sys, torch; before = set(sys.modules); import gbpn; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(result.stdout.split())


def test_torch_is_loaded_only_when_it_is_needed() -> None:
    code = (
        "import sys, gbpn, gbpn.runtime; assert 'torch' not in sys.modules; "
        "gbpn.infer; assert 'torch' in sys.modules; assert not hasattr(gbpn, 'nothing')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_every_module_says_what_it_is_for() -> None:
    for path in sources():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.relative_to(ROOT)


def commands() -> list[tuple[str, ...]]:
    """Every verb of the command line, nested ones included; () is `gbpn` itself."""
    import typer

    from gbpn.cli import app

    out: list[tuple[str, ...]] = []

    def walk(command: object, path: tuple[str, ...]) -> None:
        out.append(path)
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*path, name))

    walk(typer.main.get_command(app), ())
    return out


@pytest.mark.parametrize("path", commands(), ids=lambda path: " ".join(("gbpn", *path)))
def test_help_works(path: tuple[str, ...]) -> None:
    from typer.testing import CliRunner

    from gbpn.cli import app

    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    assert len(lines) > 2, result.output
    assert lines[1][0].isupper(), f"{' '.join(path)} needs a sentence of help; got {lines[1]!r}"


def test_versions_agree() -> None:
    def read(name: str, pattern: str) -> str | None:
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        return found[1] if found else None

    newest = read("CHANGELOG.md", r"^## (\d+\.\d+\.\d+)")
    project = read("pyproject.toml", r'^version = "(\S+)"')
    assert gbpn.__version__ == project == newest == read("CITATION.cff", r"^version: (\S+)")


TEXT = {".py", ".md", ".toml", ".cff", ".txt", ".sh", ".cpp", ".h", ".cmake", ".js", ".css", ".html", ".yml"}


def text_files() -> list[Path]:
    """Files of the project, as git knows them; all text files where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        hidden = {".venv", "build", "dist", "runs", "site"}
        paths = [p for p in ROOT.rglob("*") if not hidden & set(p.relative_to(ROOT).parts)]
    paths.append(ROOT / ".ci" / "run")
    return [p for p in paths if p.is_file() and (p.suffix in TEXT or p.name == "run")]


UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w.}])/" + r"(?:work|root|home|tmp|mnt|Users)/\w"),
    "a note to be done later": re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b"),
    "a stub": re.compile("NotImplemented" + "Error"),
    "a secret": re.compile(r"(?:hf_|ghp_|AKIA)[A-Za-z0-9]{16,}"),
}


@pytest.mark.parametrize("what", UNWANTED)
def test_no_file_holds(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNWANTED[what].search(line)
    ]
    assert not found, found


def test_files_have_names_and_sizes_that_fit_in_a_head() -> None:
    for path in sources():
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}, path
        text = re.sub(r"^__all__ = \[.*?\]$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        assert len(text.splitlines()) <= 450, path


@pytest.mark.parametrize(
    "command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)], ids=" ".join
)
def test_linters_are_content(command: tuple[str, ...]) -> None:
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    result = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
