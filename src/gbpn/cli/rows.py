"""Names and texts in two columns: in a terminal long texts go on under themselves, in a pipe on one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_rows"]


def print_rows(console: Console, rows: Iterable[tuple[str, str]], width: int) -> None:
    """Rich markup; `width` is that of the left column, and a longer name may have a line of its own."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    for name, text in rows:
        left = Text.from_markup(name)
        if not text:
            console.print(left)
        elif not console.is_terminal:
            left.pad_right(max(0, width - left.cell_len))
            console.print(left.append(" ").append(Text.from_markup(text)), soft_wrap=True)
        elif left.cell_len > width:
            right = Text.from_markup(text)
            if left.cell_len + 1 + right.cell_len <= console.width:
                console.print(left.append(" ").append(right))
            else:
                console.print(left, Padding(right, (0, 0, 0, width + 1)), sep="\n")
        else:
            line = Table.grid(padding=(0, 1, 0, 0))
            line.add_column(width=width)
            line.add_column()
            line.add_row(left, text)
            console.print(line)
