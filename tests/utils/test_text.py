from spacenet.utils.text import MeanStd, format_bytes, format_mean_std, format_seconds, plural, printable


def test_sizes_and_times() -> None:
    assert [format_bytes(size) for size in (0, 1023, 1024, 132_800, 5 * 1024**2, 3 * 1024**4)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "129.7 KiB",
        "5.0 MiB",
        "3072.0 GiB",
    ]
    assert [format_seconds(time) for time in (2.44, 119, 600, 7560)] == ["2.4 s", "119.0 s", "10 min", "2.1 h"]


def test_means_and_counts() -> None:
    assert [format_mean_std(), format_mean_std(1.234), format_mean_std(1.234, 0.5)] == ["", "1.23", "1.23 ± 0.50"]
    assert [format_mean_std(-0.001), str(MeanStd(-0.001, 0.0))] == ["0.00", "0.00 ± 0.00"]
    assert [plural(1, "task"), plural(1000, "task"), plural(2, "class", "es")] == ["1 task", "1,000 tasks", "2 classes"]


def test_nothing_controls_a_terminal() -> None:
    assert printable("naïve 中") == "naïve 中"
    assert printable("a\x1b[31m\n") == "a\\x1b[31m\\n"
