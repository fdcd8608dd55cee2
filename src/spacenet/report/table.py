"""A table as data, and its forms for terminals, notebooks, documents, papers and spreadsheets."""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal

from spacenet.utils.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable
    from rich.text import Text

LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": "$-$",
        "→": r"$\to$",
        "…": r"\ldots{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    }
)
UNLIMITED = 10_000


@dataclass(frozen=True)
class Table:
    """Rows of text cells; the first cell of a row names it.

    Examples
    --------
    >>> from spacenet.report.tables import Table
    >>> print(Table("Accuracy", ["method", "ACC %"], [["spacenet", "97.1"], ["naive", "19.9"]]).to_markdown())
    **Accuracy**
    <BLANKLINE>
    | method | ACC % |
    | :--- | ---: |
    | spacenet | 97.1 |
    | naive | 19.9 |
    <BLANKLINE>
    """

    title: str
    columns: Sequence[str]
    """Headings; empty for a table without headings."""
    rows: Sequence[Sequence[str]]
    align: str = "l"
    """One letter per column, as in LaTeX: l for text, r for numbers. Columns without a letter are right-aligned."""
    notes: Sequence[str] = ()
    """Paragraphs below the table."""
    bold: Collection[tuple[int, int]] = ()
    """Cells that stand out, as row and column; not in CSV."""

    @property
    def alignment(self) -> str:
        """The letters of all columns."""
        count = len(self.columns) or max(map(len, self.rows), default=0)
        return self.align[:count].ljust(count, "r")

    def split(self, width: int) -> list["Table"]:
        """The table, or if it is wider than this, several with the same first column and without notes.

        Text wraps, so that only numbers can make a table too wide.
        """
        align = self.alignment
        texts = len(align) - len(align.lstrip("l"))
        if "r" not in align or "l" in align[texts:] or _rich_width(self) <= width:
            return [self]
        parts = [list(range(texts))]
        for column in range(texts, len(align)):
            if _rich_width(self._select([*parts[-1], column])) > width and len(parts[-1]) > 1:
                parts.append([0])
            parts[-1].append(column)
        first, *others = (self._select(part) for part in parts)
        return [first, *(replace(table, title=f"{self.title} (continued)") for table in others)]

    def _select(self, columns: Sequence[int]) -> "Table":
        return replace(
            self,
            columns=[self.columns[column] for column in columns] if self.columns else (),
            rows=[[row[column] for column in columns] for row in self.rows],
            align="".join(self.alignment[column] for column in columns),
            notes=(),
            bold=[(row, columns.index(column)) for row, column in self.bold if column in columns],
        )

    def _marked(self, mark: str) -> list[list[str]]:
        """The rows with bold cells in this mark."""
        return [
            [mark.format(cell) if (number, column) in self.bold else cell for column, cell in enumerate(row)]
            for number, row in enumerate(self.rows)
        ]

    def to_rich(self) -> "RichTable":
        """For a terminal, in one piece and without notes; `rich.print(table)` adds notes, and splits it if needed."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text  # cells are text, not markup

        title = Text(printable(self.title), style="bold")
        drawn = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", show_header=bool(self.columns))
        for letter, name in zip(self.alignment, self.columns or [""] * len(self.alignment), strict=True):
            side: Literal["left", "right"] = "right" if letter == "r" else "left"
            drawn.add_column(Text(printable(name)), justify=side, no_wrap=letter == "r", overflow="fold")
        for number, row in enumerate(self.rows):
            styles = ["bold" if (number, column) in self.bold else "" for column in range(len(row))]
            drawn.add_row(*(Text(printable(cell), style) for cell, style in zip(row, styles, strict=True)))
        return drawn

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RichTable | Text]":
        from rich.text import Text

        yield from (part.to_rich() for part in self.split(options.max_width))
        yield from (Text(printable(note), style="dim") for note in self.notes)

    def to_text(self, width: int = UNLIMITED) -> str:
        """Plain text, for a terminal of this width."""
        from rich.console import Console

        console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, force_jupyter=False)
        with console.capture() as captured:
            console.print(self)
        return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())

    def to_markdown(self) -> str:
        """A Markdown table below its title in bold, then the notes."""
        align = self.alignment
        head = self.columns or [""] * len(align)
        rules = [":---" if letter == "l" else "---:" for letter in align]
        plain = [head, *self._marked("**{}**")]
        rows = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in plain]
        lines = "".join(f"| {' | '.join(row)} |\n" for row in (rows[0], rules, *rows[1:]))
        title = [f"**{self.title}**\n"] if self.title else []
        return "\n".join([*title, lines, *(f"{note}\n" for note in self.notes)])

    def to_latex(self) -> str:
        """A LaTeX table (needs the package booktabs) with the title as its caption; notes become comments."""
        texts = replace(self, rows=[list(map(_latex, row)) for row in self.rows])._marked(r"\textbf{{{}}}")
        head, *rows = [" & ".join(row) + r" \\" for row in (map(_latex, self.columns), *texts)]
        lines = [
            r"% Needs \usepackage{booktabs}.",
            *(f"% {printable(note)}" for note in self.notes),
            r"\begin{table}",
            r"\centering",
        ]
        lines += [rf"\caption{{{_latex(self.title)}}}"] if self.title else []
        lines += [rf"\begin{{tabular}}{{{self.alignment}}}", r"\toprule"]
        lines += [head, r"\midrule"] if self.columns else []
        lines += [*rows, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
        return "\n".join(lines)

    def to_html(self) -> str:
        """An HTML table with the title as its caption. Text columns have the class `text`."""
        kinds = [' class="text"' if letter == "l" else "" for letter in self.alignment]
        heads = [f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, self.columns, strict=False)]
        rows = []
        for row in replace(self, rows=[list(map(escape, row)) for row in self.rows])._marked("<b>{}</b>"):
            first = f'<th scope="row"{kinds[0]}>{row[0]}</th>'
            cells = (f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=False))
            rows.append(f"<tr>{first}{''.join(cells)}</tr>\n")
        caption = f"<caption>{escape(self.title)}</caption>\n" if self.title else ""
        head = f"<thead><tr>{''.join(heads)}</tr></thead>\n" if self.columns else ""
        return f"<table>\n{caption}{head}<tbody>\n{''.join(rows)}</tbody>\n</table>"

    def _repr_html_(self) -> str:
        return self.to_html() + "".join(f"\n<p>{escape(note)}</p>" for note in self.notes)

    def to_csv(self) -> str:
        """Comma-separated values, the headings first."""
        out = io.StringIO()
        rows = [self.columns, *self.rows] if self.columns else self.rows
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()


def _latex(cell: str) -> str:
    """A cell in LaTeX; the hyphen of a negative number becomes a minus sign."""
    minus = cell.startswith("-") and cell[1:2].isdigit()
    return ("$-$" if minus else "") + cell[minus:].translate(LATEX)


def _rich_width(table: Table) -> int:
    """Columns of a terminal that the table takes if nothing wraps."""
    from rich.console import Console

    return Console(width=UNLIMITED).measure(table.to_rich()).maximum
