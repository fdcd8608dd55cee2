"""One table, in all its forms; what stands in cells is text in each of them."""

import csv
import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from spacenet.report.table import Table

HOSTILE = ("<b>&", "[red]a|b", "50 % of $x_1$ #{~^\\", '"q", r')


@pytest.fixture
def table() -> Table:
    rows = [["spacenet", "Architectural", "97.10 ± 0.20", "1,000"], ["naive", "Bound", "19.90 ± 0.05", "2,000"]]
    return Table("Results", ["method", "strategy", "ACC %", "parameters"], rows, "ll", ["A note."])


def test_text_aligns_words_left_and_numbers_right(table: Table) -> None:
    title, _, head, _, first, second, *_, note = table.to_text().splitlines()
    assert title == "Results"
    assert head.split() == ["method", "strategy", "ACC", "%", "parameters"]
    assert first.index("Architectural") == second.index("Bound") == head.index("strategy")
    assert len(first) == len(second) == len(head)
    assert note == "A note."


def test_a_table_that_is_too_wide_is_split_and_loses_nothing(table: Table) -> None:
    wide = table.to_text().splitlines()[2]
    assert table.split(len(wide) + 2) == [table]
    first, second = table.split(len(wide))
    assert (first.columns, second.columns) == (["method", "strategy", "ACC %"], ["method", "parameters"])
    assert second.title == "Results (continued)"
    shown = table.to_text(len(wide))
    assert max(map(len, shown.splitlines())) <= len(wide)
    for cell in (*table.columns, *table.rows[0], *table.rows[1], "A note."):
        assert cell in shown
    prose = Table("t", [], [["a", "word " * 40]], "ll")
    assert prose.split(40) == [prose]  # text wraps
    assert max(map(len, prose.to_text(40).splitlines())) <= 40


def test_rich_prints_it_at_the_width_of_the_terminal(table: Table) -> None:
    console = Console(width=40, file=io.StringIO())
    with console.capture() as captured:
        console.print(table)
    assert captured.get().count("spacenet") == 2
    assert table.to_rich().row_count == 2


def test_markdown(table: Table) -> None:
    lines = table.to_markdown().splitlines()
    assert lines[0] == "**Results**"
    assert lines[2:5] == [
        "| method | strategy | ACC % | parameters |",
        "| :--- | :--- | ---: | ---: |",
        "| spacenet | Architectural | 97.10 ± 0.20 | 1,000 |",
    ]
    assert lines[-1] == "A note."
    assert Table("", [], [["a|b", "1"]]).to_markdown() == "|  |  |\n| :--- | ---: |\n| a\\|b | 1 |\n"


def test_latex_is_escaped(table: Table) -> None:
    text = table.to_latex()
    assert "\\begin{tabular}{llrr}\n\\toprule\nmethod & strategy & ACC \\% & parameters \\\\\n\\midrule\n" in text
    assert r"spacenet & Architectural & 97.10 $\pm$ 0.20 & 1,000 \\" in text
    hostile = Table("t", [], [list(HOSTILE)], "llll").to_latex()
    assert r"50 \% of \$x\_1\$ \#\{\textasciitilde{}\textasciicircum{}\textbackslash{}" in hostile
    assert r"\midrule" not in hostile
    assert r"a & $-$9.00 \\" in Table("t", ["m", "BWT"], [["a", "-9.00"]]).to_latex()
    assert r"a-1 & \textless{}1 \\" in Table("t", [], [["a-1", "<1"]]).to_latex()


def test_html_names_rows_and_columns_and_is_escaped(table: Table) -> None:
    text = table.to_html()
    assert "<caption>Results</caption>" in text
    assert '<th scope="col" class="text">method</th>' in text
    assert '<th scope="col">ACC %</th>' in text
    assert '<th scope="row" class="text">naive</th><td class="text">Bound</td><td>19.90 ± 0.05</td>' in text
    assert "A note." not in text
    assert "<p>A note.</p>" in table._repr_html_()
    assert "&lt;b&gt;&amp;" in Table(HOSTILE[0], [], [HOSTILE]).to_html()
    assert "<b>" not in Table(HOSTILE[0], HOSTILE, [HOSTILE]).to_html()


def test_bold_cells_stand_out_in_every_form_but_csv(table: Table) -> None:
    marked = replace(table, bold=[(0, 2)])
    assert "| spacenet | Architectural | **97.10 ± 0.20** | 1,000 |" in marked.to_markdown()
    assert r"Architectural & \textbf{97.10 $\pm$ 0.20} & 1,000 \\" in marked.to_latex()
    assert "<td><b>97.10 ± 0.20</b></td>" in marked.to_html()
    assert marked.to_csv() == table.to_csv()
    assert marked.to_text() == table.to_text()
    console = Console(width=200, file=io.StringIO(), force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(marked)
    assert "\x1b[1m97.10 ± 0.20" in captured.get()
    second = replace(table, bold=[(0, 3)]).split(len(table.to_text().splitlines()[2]))[1]
    assert list(second.bold) == [(0, 1)]
    assert "&lt;b&gt;" in Table("", [], [HOSTILE], bold=[(0, 0)]).to_html()


def test_csv_can_be_read_back(table: Table) -> None:
    assert list(csv.reader(io.StringIO(table.to_csv()))) == [table.columns, *table.rows]
    assert list(csv.reader(io.StringIO(Table("t", [], [HOSTILE]).to_csv()))) == [list(HOSTILE)]


def test_cells_are_no_markup_and_cannot_control_the_terminal() -> None:
    shown = Table("[bold]t", ["[red]c"], [["[blue]x\x1b[2J"]]).to_text()
    for text in ("[bold]t", "[red]c", "[blue]x\\x1b[2J"):
        assert text in shown


def test_importing_tables_imports_no_heavy_library() -> None:
    heavy = ("torch", "numpy", "matplotlib", "sklearn", "scipy", "pandas", "jinja2", "rich")
    code = f"import sys, spacenet.report.tables; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
