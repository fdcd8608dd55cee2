import re
from pathlib import Path

from spacenet.report.plots.plot import CSS_VARIABLES, INK, PALETTE, Plot, new_figure, svg_width, task_colors


def plot(text: str = "a line") -> Plot:
    def draw() -> object:
        figure = new_figure(2.0)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=PALETTE[0])
        axes.set_xlabel("steps")
        axes.fill_between([0, 1], [0, 1], color=PALETTE[1])
        return figure

    return Plot("a-line", "It rises", text, draw)  # type: ignore[arg-type]


def test_inline_follows_the_page_and_says_what_it_shows() -> None:
    drawn = plot('a "line" <up>').inline_svg()
    assert 'aria-label="a &quot;line&quot; &lt;up&gt;"' in drawn
    assert 'role="img"' in drawn
    assert not any(color in drawn for color in CSS_VARIABLES)
    assert "var(--ink)" in drawn
    assert PALETTE[0] in drawn
    assert ">steps<" in drawn
    assert drawn.startswith("<svg")
    assert drawn.rstrip().endswith("</svg>")


def test_names_within_a_plot_are_its_own() -> None:
    drawn = plot().inline_svg()
    assert all(name.startswith("a-line-") for name in re.findall(r'\bid="([^"]+)"', drawn))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', drawn)
    assert used
    assert set(used) <= set(re.findall(r'\bid="([^"]+)"', drawn))


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    assert [path.name for path in plot().save(tmp_path)] == ["a-line.svg", "a-line.png"]
    assert plot().svg() == (tmp_path / "a-line.svg").read_text()
    assert INK in plot().svg()
    assert (tmp_path / "a-line.png").read_bytes().startswith(b"\x89PNG")
    (pdf,) = plot().save(tmp_path, ["pdf"])
    assert pdf.name == "a-line.pdf"
    assert pdf.read_bytes() == plot().pdf()
    assert pdf.read_bytes().startswith(b"%PDF")


def test_there_are_colors_for_any_number() -> None:
    for count in (1, 8, 9, 100):
        assert len(set(task_colors(count))) == count


def test_ids_that_nothing_refers_to_are_dropped_since_equal_images_share_theirs() -> None:
    def draw() -> object:
        figure = new_figure(2.0)
        for axes in figure.subplots(1, 2):
            axes.imshow([[0, 1], [1, 0]])
        return figure

    drawn = Plot("twins", "Equal", "two equal images", draw).inline_svg()  # type: ignore[arg-type]
    found = re.findall(r' id="([^"]+)"', drawn)
    assert drawn.count("<image") == 2
    assert len(found) == len(set(found))
    assert 400 < svg_width(drawn) < 600
