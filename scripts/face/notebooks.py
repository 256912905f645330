"""Notebooks run with the present weights, their outputs kept for those who only read them."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs; files it writes go to `folder`."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times differ from run to run
        for output in cell.get("outputs", ()):
            if "image/jpeg" in output.get("data", {}):  # a picture is offered twice; the smaller one does
                output["data"].pop("image/png", None)
    return notebook


def write() -> None:
    """Renew the outputs of all notebooks."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path, FOLDER), path)
