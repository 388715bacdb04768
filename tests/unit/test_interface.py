"""What `import morocco` offers: the numbers of the command line, as objects."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import morocco
from morocco.errors import DataError, TargetError
from morocco.logs.log import LogPath
from morocco.logs.samples import Sample
from paths import DATA
from sample_logs import write_quick_model


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The logs of a model that starts in 4 s and then does 20 records a second."""
    return write_quick_model(tmp_path / "model")


def test_logs_are_read_with_their_sizes_and_run_times(logs: Path) -> None:
    found = morocco.read_logs(logs).logs
    assert [(log.path.size, log.run_time) for log in found] == [((1, 1), 4.0), ((200, 2), 14.0)]


def test_the_estimates_are_those_of_the_command_line(logs: Path) -> None:
    command = [sys.executable, "-m", "morocco", "stats", str(logs)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (estimate,) = morocco.estimate(logs).estimates
    assert (estimate.rps, estimate.init_time) == (20.0, 4.0)
    assert {**vars(estimate), **json.loads(printed)} == vars(estimate)


def test_estimates_come_from_paths_and_from_logs_alike(logs: Path) -> None:
    assert morocco.estimate(morocco.read_logs(logs)) == morocco.estimate(str(logs))
    with pytest.raises(TypeError, match="one collection"):
        morocco.estimate(logs, morocco.read_logs(logs))


def test_estimates_are_a_frame_with_a_row_each(logs: Path) -> None:
    frame = morocco.to_dataframe(morocco.estimate(logs))
    assert frame[["task", "rps", "runs"]].to_dict("records") == [
        {"task": "parus", "rps": 20.0, "runs": 1}
    ]
    assert frame["gpu_ram"].isna().all()


def test_runs_are_drawn_as_figures_that_can_be_saved(logs: Path, tmp_path: Path) -> None:
    ((model, task), figure) = next(iter(morocco.plot_runs(logs).items()))
    assert (model, task) == ("model", "parus")
    figure.savefig(tmp_path / "parus.png")
    assert (tmp_path / "parus.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("task", ["parus", "muserc", "rucos"])
def test_predictions_are_scored_from_files_and_from_records(task: str, tmp_path: Path) -> None:
    title = {"parus": "PARus", "muserc": "MuSeRC", "rucos": "RuCoS"}[task]
    gold = DATA / title / "val.jsonl"
    records = [json.loads(line) for line in gold.read_text().splitlines()]
    predictions = list(answer_rightly(task, records))
    file = tmp_path / f"{task}.jsonl"
    file.write_text("".join(json.dumps(prediction) + "\n" for prediction in predictions))
    from_files = morocco.score_predictions(task, file, DATA)
    assert from_files == morocco.score_predictions(task, predictions, records)
    assert from_files.value == 1.0
    assert morocco.score_folders(tmp_path, DATA).scores == (from_files,)


def answer_rightly(task: str, records: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    for record in records:
        if task == "rucos":
            answers = record["qas"][0]["answers"]  # type: ignore[index]
            yield {"idx": record["idx"], "label": answers[0]["text"]}
        else:
            yield record


def test_a_record_that_cannot_be_scored_is_named_by_its_number() -> None:
    gold = [{"idx": 0, "label": 1}]
    with pytest.raises(DataError, match=r"the list of predictions, line 1.*label"):
        morocco.score_predictions("parus", [{"idx": 0, "label": 7}], gold)
    with pytest.raises(DataError, match=r"the list of predictions lacks 1 .*idx 1"):
        morocco.score_predictions("parus", gold, [*gold, {"idx": 1, "label": 0}])


def test_a_submission_is_judged_against_a_profile(logs: Path, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('tasks = ["parus"]\nruns = 1\n')
    result = morocco.check_submission(logs, profile=profile)
    assert next(r for r in result.results if r.rule == "complete").status == "Yes"
    assert not morocco.check_submission(logs).valid


def test_a_run_is_measured_and_its_record_read_again(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "parus" / "5_2_01.jsonl"
    record = morocco.measure(
        f"exec:{sys.executable} -c 'import sys; sys.stdout.write(sys.stdin.read())'",
        DATA,
        "parus",
        input_size=5,
        batch_size=2,
        output=log,
        gpus="none",
        env={"COLOUR": "blue"},
    )
    assert (record.exit_code, record.prediction_count) == (0, 5)
    assert record.arguments["env"] == ["COLOUR"]
    (read,) = morocco.read_records(log.parents[1]).values()
    assert (read.run_time, read.batch_size) == (record.run_time, 2)


def test_a_run_that_fails_raises_what_the_command_line_prints() -> None:
    with pytest.raises(TargetError, match="code 3"):
        morocco.measure("exec:sh -c 'exit 3'", DATA, "parus", input_size=1, gpus="none")


def test_a_log_without_a_record_has_none(logs: Path) -> None:
    assert morocco.read_records(logs) == {}


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="measure_all"):
        morocco.measure_all  # noqa: B018
    assert set(morocco.__all__) <= set(dir(morocco))


def test_importing_morocco_loads_none_of_it() -> None:
    code = "import sys, morocco; print(*(name for name in sys.modules if 'morocco.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_sizes_and_samples_can_be_computed_with(logs: Path) -> None:
    (log, _) = morocco.read_logs(logs).logs
    assert log.path == LogPath("parus", 1, 1, 1)
    assert isinstance(log.samples[0], Sample)
