"""Executes a notebook as Jupyter does and writes it with its outputs.

Usage: execute.py NOTEBOOK OUT

It leaves out what differs between machines and runs: times, versions, names of kernels.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL_SECONDS = 300


def execute(source: Path) -> nbformat.NotebookNode:
    """Returns the notebook with its outputs; its folder is the working folder of its code."""
    notebook = nbformat.read(source, as_version=4)
    NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(source.parent)}},
    ).execute()
    notebook.metadata = nbformat.NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
    nbformat.validate(notebook)
    return notebook


def main(source: Path, target: Path) -> None:
    """Writes the executed notebook atomically, so that no half-written file is left."""
    notebook = execute(source)
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    os.replace(temporary, target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: execute.py NOTEBOOK OUT")
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
