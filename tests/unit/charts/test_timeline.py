"""Figures are drawn for real and read back: as bytes, and as the text of an SVG."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from math import isnan, nan
from pathlib import Path

import pytest

from morocco.charts.curves import PANELS, Curve, build_curve, keep_extremes, take_means
from morocco.charts.timeline import plot
from morocco.errors import DataError, OutputError
from morocco.logs.discovery import Collection, collect_logs
from morocco.logs.log import Log, LogPath
from morocco.logs.samples import Sample
from paths import PUBLISHED

MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
GPU = (0.9, 2**31)
NO_GPU = (None, None)


def a_run(
    name: str = "terra/1_1_01.jsonl",
    seconds: float = 2.0,
    model: str = "rubert",
    gpu: tuple[float | None, int | None] = GPU,
    hertz: int = 3,
) -> Log:
    """Return a log as morocco writes it: no CPU reading in the first line, none in the last."""
    path = LogPath.parse(name)
    assert path is not None
    beats = range(1, int(seconds * hertz) + 1)
    samples = [Sample(1e9, None, 2**24, *NO_GPU)]
    samples += [Sample(1e9 + beat / hertz, beat % 3 / 2, 2**30, *gpu) for beat in beats]
    return Log(name, model, path, (*samples, Sample(1e9 + seconds)))


def a_null_run(name: str, seconds: float = 2.0) -> Log:
    path = LogPath.parse(name)
    assert path is not None
    return Log(name, "rubert", path, tuple(Sample(1e9 + i * seconds / 5) for i in range(6)))


def a_cpu_log(*readings: float | None) -> Log:
    samples = (Sample(1e9 + second, cpu) for second, cpu in enumerate([None, *readings, None]))
    return Log("cpu", "rubert", LogPath("terra", 5, 1, 1), tuple(samples))


def a_line(values: Sequence[float], step: float = 1.0) -> Curve:
    return [(i * step, value) for i, value in enumerate(values)]


def draw_svg(folder: Path, *logs: Log) -> str:
    """Return the text of the only figure of `logs`."""
    (path,) = plot(Collection(logs, many_models=False), folder / "figure.svg")
    return path.read_text(encoding="utf-8")


def runs(pattern: str, times: Sequence[float]) -> list[Log]:
    return [a_run(pattern.format(i), seconds) for i, seconds in enumerate(times, 1)]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_every_kind_of_image_is_what_its_name_says(tmp_path: Path, suffix: str) -> None:
    image = tmp_path / f"terra{suffix}"
    assert plot(Collection((a_run(),), many_models=False), image) == [image]
    assert image.read_bytes().startswith(MAGIC[suffix.lower()])
    assert list(tmp_path.iterdir()) == [image]


def test_a_png_is_big_enough_to_read(tmp_path: Path) -> None:
    (path,) = plot(Collection((a_run(),), many_models=False), tmp_path / "terra.png")
    header = path.read_bytes()[16:24]
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert (width, height) == (1800, 1200)


def test_panels_title_and_units_are_in_the_figure(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, a_run())
    for text in ("TERRa", "CPU", "cores", "RAM", "GB", "GPU use", "%", "GPU RAM"):
        assert f">{text}<" in svg
    assert "no GPU" not in svg
    assert "not measured" not in svg


def test_the_legend_counts_the_runs_of_each_group(tmp_path: Path) -> None:
    logs = runs("terra/1_1_{:02d}.jsonl", [2, 2]) + runs("terra/2000_32_{:02d}.jsonl", [4, 4, 4])
    svg = draw_svg(tmp_path, *logs)
    for text in ("1 record, batch 1", "2 runs", "2,000 records, batch 32", "3 runs"):
        assert f">{text}<" in svg


def test_the_median_of_the_1_1_runs_is_the_init_time(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, *runs("terra/1_1_{:02d}.jsonl", [2.0, 2.1, 9.0]))
    assert ">init time 2.1 s<" in svg


def test_without_1_1_runs_no_init_time_is_claimed(tmp_path: Path) -> None:
    assert "init time" not in draw_svg(tmp_path, a_run("terra/100_8_01.jsonl"))


def test_a_run_far_off_the_median_is_labelled_with_its_index(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, *runs("terra/1_1_{:02d}.jsonl", [2.0, 2.1, 4.0, 2.1]))
    assert ">03<" in svg
    assert ">01<" not in svg
    assert "more than 10% off" in svg


def test_outliers_that_end_together_share_a_label(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, *runs("terra/1_1_{:02d}.jsonl", [9.1, 9.0, 2, 2, 2]))
    assert ">01, 02<" in svg


def test_a_model_on_the_cpu_has_no_gpu(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, a_run(gpu=NO_GPU))
    assert svg.count(">no GPU: no process of the task was seen on one<") == 2


def test_gpu_memory_without_gpu_use_is_no_missing_gpu(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, a_run(gpu=(None, 2**31)))
    assert svg.count(">not measured<") == 1
    assert "no GPU" not in svg


def test_a_log_without_readings_counts_as_a_run(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, a_run(), a_null_run("terra/1_1_02.jsonl"))
    assert ">2 runs, 1 empty<" in svg
    assert "a log without readings" in svg


def test_a_log_with_a_single_kind_of_reading_is_not_empty(tmp_path: Path) -> None:
    assert "empty" not in draw_svg(tmp_path, a_cpu_log(1.0, 2.0))


def test_nothing_but_logs_without_readings_is_drawn_too(tmp_path: Path) -> None:
    assert draw_svg(tmp_path, a_null_run("terra/1_1_01.jsonl")).count(">not measured<") == 4


@pytest.mark.parametrize("samples", [(Sample(1.0),), (Sample(1.0, 0.0, 0, 0.0, 0),)])
def test_a_log_of_one_line_is_drawn(tmp_path: Path, samples: tuple[Sample, ...]) -> None:
    log = Log("one", "rubert", LogPath("terra", 5, 1, 1), samples)
    assert ">1 run" in draw_svg(tmp_path, log)


def test_more_groups_than_colours_have_a_colour_each(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path, *(a_run(f"terra/100_{2**i}_01.jsonl") for i in range(9)))
    assert svg.count(">1 run<") == 9


def test_more_sizes_than_a_figure_can_show_are_an_error(tmp_path: Path) -> None:
    logs = [a_run(f"parus/{size}_1_01.jsonl") for size in range(1, 202)]
    with pytest.raises(DataError, match="parus has runs of 201 sizes"):
        draw_svg(tmp_path, *logs)


def test_text_from_paths_is_shown_as_it_is(tmp_path: Path) -> None:
    assert ">$x_1$ модель 中?<" in draw_svg(tmp_path, a_run("$x_1$ модель 中\udcff/1_1_01.jsonl"))


def test_several_tasks_take_a_file_each(tmp_path: Path) -> None:
    logs = (a_run("rcb/1_1_01.jsonl"), a_run("terra/1_1_01.jsonl"))
    written = plot(Collection(logs, many_models=False), tmp_path / "new" / "of_{task}.svg")
    assert [path.name for path in written] == ["of_rcb.svg", "of_terra.svg"]
    assert ">RCB<" in written[0].read_text(encoding="utf-8")


def test_several_models_take_a_folder_each_and_are_named_in_the_title(tmp_path: Path) -> None:
    logs = tuple(a_run(model=model) for model in ("a/big", "b/big"))
    written = plot(Collection(logs, many_models=True), tmp_path / "{model}" / "{task}.svg")
    assert [path.parent.name for path in written] == ["a_big", "b_big"]
    assert ">TERRa, a/big<" in written[0].read_text(encoding="utf-8")


def test_a_group_has_the_same_colour_in_every_figure(tmp_path: Path) -> None:
    logs = (a_run("rcb/10_1_01.jsonl"), a_run("rcb/20_1_01.jsonl"), a_run("terra/20_1_01.jsonl"))
    rcb, terra = plot(Collection(logs, many_models=False), tmp_path / "{task}.svg")
    assert all("#d55e00" in path.read_text(encoding="utf-8") for path in (rcb, terra))


@pytest.mark.parametrize("name", ["terra.jpg", "terra", "terra.png.gz", "{task}"])
def test_another_kind_of_image_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"must end in one of \.png, \.svg, \.pdf\.$"):
        plot(Collection((a_run(),), many_models=False), tmp_path / name)


@pytest.mark.parametrize(
    ("image", "many", "help_name"),
    [
        ("x.png", "2 models and 2 tasks", "x_{model}_{task}.png"),
        ("{model}/x.png", "2 tasks", "{model}/x_{task}.png"),
        ("{task}.png", "2 models", "{task}_{model}.png"),
    ],
)
def test_a_path_for_one_figure_is_refused_for_several(
    tmp_path: Path, image: str, many: str, help_name: str
) -> None:
    logs = (a_run(model="a"), a_run("rcb/1_1_01.jsonl", model="b"))
    with pytest.raises(DataError) as caught:
        plot(Collection(logs, many_models=True), tmp_path / image)
    assert many in str(caught.value)
    assert f"`morocco plot PATH... '{tmp_path / help_name}'`" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_image_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot write .*terra\.svg: "):
        plot(Collection((a_run(),), many_models=False), tmp_path / "file" / "terra.svg")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "terra.svg").mkdir()
    with pytest.raises(OutputError):
        plot(Collection((a_run(),), many_models=False), tmp_path / "terra.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["terra.svg"]


@pytest.mark.parametrize("name", ["../1_1_01.jsonl", "/1_1_01.jsonl"])
def test_the_name_of_a_task_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    image = tmp_path / "a" / "{task}" / "x.svg"
    (path,) = plot(Collection((a_run(name),), many_models=False), image)
    assert path == tmp_path / "a" / "_" / "x.svg"


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_the_same_logs_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    collection = Collection((a_run(),), many_models=False)
    first, second = (plot(collection, tmp_path / (name + suffix))[0] for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_settings_of_the_user_change_nothing_and_stay(tmp_path: Path) -> None:
    import matplotlib

    plain = draw_svg(tmp_path, a_run())
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        assert draw_svg(tmp_path, a_run()) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_matplotlib_and_pandas_are_not_imported_with_the_module() -> None:
    heavy = "{'matplotlib', 'pandas'} & set(sys.modules)"
    code = f"import sys, morocco.charts.timeline; sys.exit(bool({heavy}))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_long_runs_make_small_files_and_show_their_mean(tmp_path: Path) -> None:
    logs = [a_run(f"terra/2000_32_{i:02d}.jsonl", 2000.0 + i) for i in range(1, 6)]
    svg = draw_svg(tmp_path, *logs)
    assert len(svg) < 1_000_000
    assert "mean of 16.7 s, faint: single readings" in svg


def test_a_curve_starts_at_0_and_has_the_unit_of_its_panel() -> None:
    log = Log("ram", "m", LogPath("terra", 5, 1, 1), (Sample(7.0, ram=2**30), Sample(9.0)))
    first, last = build_curve(log, PANELS[1])
    assert first == (0.0, 1.0)
    assert last[0] == 2.0
    assert isnan(last[1])


def test_thinning_keeps_a_peak_of_one_reading() -> None:
    thinned = keep_extremes(a_line([1.0] * 3001 + [9.0] + [1.0] * 2998, step=1 / 3), 2.5)
    assert [value for _, value in thinned].count(9.0) == 1
    assert thinned == sorted(thinned, key=lambda point: point[0])
    assert len(thinned) < 1000


def test_thinning_keeps_a_peak_among_readings_of_the_same_time() -> None:
    line = [(0.0, 2.0), (0.0, 9.0), (0.0, 2.0), (1.0, 3.0)]
    assert [value for _, value in keep_extremes(line, 1.0)] == [2.0, 9.0, 3.0]


def test_a_mean_stands_in_the_middle_of_its_readings() -> None:
    assert take_means(a_line([1.0, 3.0, 5.0, 9.0]), 2.0) == [(0.5, 2.0), (2.5, 7.0)]


@pytest.mark.parametrize("thin", [keep_extremes, take_means])
def test_thinning_keeps_a_gap(thin: Callable[[Curve, float], Curve]) -> None:
    thinned = thin(a_line([1.0] * 4 + [nan] * 2 + [1.0] * 4), 10.0)
    assert [isnan(value) for _, value in thinned] == [False, True, False]


def test_a_reading_between_two_gaps_is_a_dot(tmp_path: Path) -> None:
    marks = [
        draw_svg(tmp_path, a_cpu_log(3.0, middle, 1.0, 2.0)).count("<use ")
        for middle in (1.0, None)
    ]
    # Ticks are marks as well; the dot is one more.
    assert marks[1] == marks[0] + 1


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"the published logs are not at {PUBLISHED}")
class TestPublishedLogs:
    def test_a_task_with_five_groups(self, tmp_path: Path) -> None:
        (path,) = plot(collect_logs([PUBLISHED / "rubert" / "parus"]), tmp_path / "parus.svg")
        svg = path.read_text(encoding="utf-8")
        assert svg.count(">3 runs<") == 3
        assert svg.count(">5 runs<") == 2
        assert ">init time 19.2 s<" in svg
        assert ">01, 02<" in svg

    def test_a_task_with_a_null_log(self, tmp_path: Path) -> None:
        (path,) = plot(collect_logs([PUBLISHED / "rubert" / "rcb"]), tmp_path / "rcb.svg")
        assert ">5 runs, 1 empty<" in path.read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_every_task_of_two_models(self, tmp_path: Path) -> None:
        written = plot(collect_logs([PUBLISHED]), tmp_path / "{model}" / "{task}.png")
        assert len(written) == len(set(written)) == 18
        assert all(path.read_bytes().startswith(MAGIC[".png"]) for path in written)
