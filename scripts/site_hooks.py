"""How the site reads docstrings: aligned names and their meaning become tables, examples become code.

mkdocs.yml names this file twice: as an extension of mkdocstrings' reader, and as a hook of the pages.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROW = re.compile(r"^(\S(?:.*?\S)?)\s{2,}(\S.*)$")
"""`name  meaning`, or several names with commas."""
_OPEN = "how-it-works.md"
"""The page on which the source of a function stands open beside its equation."""


class PlainDocstrings(Extension):
    """Docstrings here are plain text."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Paragraph by paragraph."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(_paragraph(paragraph.splitlines()) for paragraph in paragraphs)


def _paragraph(lines: list[str]) -> str:
    if lines[0].startswith(">>>"):
        return "\n".join(["```python", *(line[4:] for line in lines), "```"])
    if lines[0].startswith("    "):
        return "\n".join(lines)
    words: list[str] = []
    rows: list[list[str]] = []
    for line in lines:
        if found := _ROW.match(line):
            for name, meaning in _cells(found):
                rows.append([name, meaning])
        elif rows and line.startswith("  "):
            rows[-1][1] += " " + line.strip()
        elif rows:  # words after a table
            return "\n\n".join([_joined(words, rows), _paragraph(lines[lines.index(line) :])])
        else:
            words.append(line)
    return _joined(words, rows)


def _cells(found: re.Match[str]) -> list[tuple[str, str]]:
    """Two pairs may share a line: `a  meaning;  b  meaning`."""
    pairs = re.split(r";\s{2,}", found[0])
    cells = [_ROW.match(pair) for pair in pairs]
    return [(cell[1], cell[2]) for cell in cells if cell] if all(cells) else [(found[1], found[2])]


def _joined(words: list[str], rows: list[list[str]]) -> str:
    parts = ["\n".join(words)] if words else []
    if rows:
        body = [f"| `{name}` | {meaning.replace('|', chr(92) + '|')} |" for name, meaning in rows]
        parts.append("\n".join(["| | |", "|---|---|", *body]))
    return "\n\n".join(parts)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """mkdocs' hook, when a page is finished."""
    if page.file.src_path != _OPEN:
        return output
    return output.replace(
        '<details class="mkdocstrings-source">', '<details class="mkdocstrings-source" open>'
    )
