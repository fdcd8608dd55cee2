import re
from pathlib import Path

from spacenet.report.plots.plot import INK, MARKS, TASKS, Plot, _numbered, colours, new_figure


def plot(text: str = "a line") -> Plot:
    def draw() -> object:
        figure = new_figure(2.0)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=TASKS[0])
        axes.set_xlabel("steps")
        axes.fill_between([0, 1], [0, 1], color=TASKS[1])
        return figure

    return Plot("a-line", "It rises", text, draw)  # type: ignore[arg-type]


def test_inline_follows_the_page_and_says_what_it_shows() -> None:
    drawn = plot('a "line" <up>').inline()
    assert 'aria-label="a &quot;line&quot; &lt;up&gt;"' in drawn
    assert 'role="img"' in drawn
    assert not any(colour in drawn for colour in MARKS)
    assert "var(--ink)" in drawn
    assert TASKS[0] in drawn
    assert ">steps<" in drawn
    assert drawn.startswith("<svg")
    assert drawn.rstrip().endswith("</svg>")


def test_names_within_a_picture_are_its_own() -> None:
    drawn = plot().inline()
    assert all(name.startswith("a-line-") for name in re.findall(r'\bid="([^"]+)"', drawn))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', drawn)
    assert used
    assert set(used) <= set(re.findall(r'\bid="([^"]+)"', drawn))


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    assert [path.name for path in plot().save(tmp_path)] == ["a-line.svg", "a-line.png"]
    assert plot().svg() == (tmp_path / "a-line.svg").read_text()
    assert INK in plot().svg()
    assert (tmp_path / "a-line.png").read_bytes().startswith(b"\x89PNG")


def test_there_are_colours_for_any_number() -> None:
    for count in (1, 8, 9, 100):
        assert len(set(colours(count))) == count


def test_the_same_picture_is_the_same_file_though_names_were_made_from_rounding() -> None:
    drawn = '<svg><g id="b7"><use href="#a1"/></g><g clip-path="url(#pff)"/><path id="a1"/><clipPath id="pff"/></svg>'
    again = drawn.replace("pff", "p07").replace("b7", "b8")
    assert _numbered(drawn) == _numbered(again)
    assert _numbered(drawn).count('"#e1"') == _numbered(drawn).count('id="e1"') == 1
