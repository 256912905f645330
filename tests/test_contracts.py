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
from source_files import PACKAGE, ROOT, sources

LAYERS = {
    "ground": ("camera", "errors", "files", "gaussian", "kernels"),
    "boxes": ("config", "distribution", "foreign", "how", "measurements", "mrf", "sample", "sigma"),
    "workers": (
        "baselines",
        "formats",
        "gbp",
        "metrics",
        "network",
        "sensors",
        "show",
        "synthetic",
        "weights",
        "worlds",
    ),
    "supplies": ("augmentation", "datasets", "inputs", "recordings", "scenes"),
    "whole": ("answer", "engine", "model"),
    "uses": ("bench", "evaluate", "export", "predict", "runtime", "train"),
    "runs": ("jobs", "scale"),
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
    "fastapi", "uvicorn", "websockets", "yaml", "rosbags", "av", "pyarrow", "ray", "embreex", "numba",
}  # fmt: skip
"""Packages that `import gbpn` must not load."""


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
        if unit(path) in ("__init__", "__main__", "cli", "studio"):
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
