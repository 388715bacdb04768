"""`morocco pack`: the same logs make the same zip, and only what `check` accepts."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.errors import DataError
from morocco.logs import archive, pack
from morocco.logs.discovery import collect_logs
from morocco.logs.pack import pack_logs
from morocco.logs.samples import Sample
from morocco.logs.submission import load_submission
from runs import run_morocco
from sample_logs import BEGIN, make_record, make_samples, write_record, write_samples
from special_files import read_fifo

PROFILE = """
name = "one task"
tasks = ["parus"]
runs = 1
"""


def write_logs(folder: Path, task: str = "parus") -> Path:
    """Write runs that `check` accepts, the long one with a record."""
    start = BEGIN + 1000 * len(list(folder.rglob("*.jsonl")))
    write_samples(folder / task / "1_1_01.jsonl", make_samples(start, 5.0))
    long = write_samples(folder / task / "2000_32_01.jsonl", make_samples(start + 500, 60.0))
    write_record(long, {"format": 1, "task": task})
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "logs")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out" / "logs.zip"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE)
    return path


def names_in(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_a_valid_submission_is_packed(logs: Path, output: Path, profile: Path) -> None:
    done = run_morocco("pack", logs, "-o", output, "--profile", profile).succeeds()
    assert done.stdout == f"{output}\n"
    assert done.stderr.endswith("VALID\n2 logs, 1 record\n")
    assert names_in(output) == [
        "parus/1_1_01.jsonl",
        "parus/2000_32_01.json",
        "parus/2000_32_01.jsonl",
    ]


def test_an_invalid_submission_is_packed_only_with_no_check(logs: Path, output: Path) -> None:
    done = run_morocco("pack", logs, "-o", output)
    assert (done.code, done.stdout) == (1, "")
    report, _, error = done.stderr.partition("morocco: error: ")
    checked = run_morocco("check", logs).stdout
    bad = re.sub(r"^Yes .*\n( {20}.*\n)*", "", checked, flags=re.MULTILINE)
    assert report == bad
    assert report.endswith("INVALID\n")
    assert "Nothing was packed" in error
    assert "--no-check" in error
    assert not output.exists()
    assert run_morocco("pack", logs, "-o", output, "--no-check").succeeds().stdout == f"{output}\n"


def test_check_and_stats_print_the_same_for_the_zip_and_the_folder(
    logs: Path, output: Path, profile: Path
) -> None:
    write_logs(logs, "rcb")
    run_morocco("pack", logs, "-o", output, "--no-check").succeeds()
    for command in (["check", "--profile", profile], ["stats"], ["stats", "--format", "table"]):
        of_folder, of_zip = run_morocco(*command, logs), run_morocco(*command, output)
        assert of_zip.stdout == of_folder.stdout
        assert of_zip.code == of_folder.code


def test_the_same_logs_make_the_same_bytes_wherever_they_lie(tmp_path: Path, logs: Path) -> None:
    other = tmp_path / "far" / "away"
    shutil.copytree(logs, other / "rubert")
    for file in other.rglob("*.json*"):
        os.utime(file, (1, 1))
        file.chmod(0o600)
    (other / "rubert" / "empty").mkdir()
    first, second, third = (tmp_path / f"{name}.zip" for name in "abc")
    umask = os.umask(0o077)
    try:
        pack_logs([logs], first)
        pack_logs(sorted(other.rglob("*.jsonl"), reverse=True), second)
        pack_logs([first], third)
    finally:
        os.umask(umask)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_the_zip_reveals_nothing_about_the_machine(logs: Path, output: Path) -> None:
    pack_logs([logs], output)
    with zipfile.ZipFile(output) as archive:
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert entry.external_attr >> 16 == stat.S_IFREG | 0o644
            assert (entry.create_system, entry.extra, entry.comment) == (3, b"", b"")


def test_the_records_reveal_nothing_private_and_come_to_the_same_results(
    logs: Path, output: Path, profile: Path
) -> None:
    users = [{"gpu": 0, "pid": 7, "name": "salary-model", "memory": 1}]
    for number, path in enumerate(sorted(logs.rglob("*.jsonl"))):
        (found,) = load_submission([path]).entries
        assert found.log
        host = {"cpu": "Broadwell", "cores": 8, "ram": 94 * 2**30, "name": f"me-{number}"}
        target = {"target": "exec:/home/me/infer --token swordfish", "image_id": None}
        write_record(path, make_record(found.log, host=host, target=target, gpu_users=users))
    done = run_morocco("pack", logs, "-o", output, "--no-check").succeeds()
    assert "Hidden in the records of the zip: host names (2), folders (1)" in done.stderr
    with zipfile.ZipFile(output) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist())
    for private in (b"me-0", b"/home/me", b"salary", b"swordfish", b"GPU-1"):
        assert private not in text
    assert "salary" in (logs / "parus" / "1_1_01.json").read_text()
    told = [run_morocco("check", "--profile", profile, place).stdout for place in (logs, output)]
    assert told[0].replace("salary-model", "process 1") == told[1]
    for command in ("stats", "report"):
        assert run_morocco(command, logs).stdout == run_morocco(command, output).stdout


def test_several_models_keep_their_folders(tmp_path: Path, output: Path) -> None:
    paths = [write_logs(tmp_path / lab / "rubert") for lab in ("ours", "theirs")]
    paths.append(write_logs(tmp_path / "gpt"))
    pack_logs(paths, output)
    models = {log.model for log in collect_logs(paths).logs}
    assert {"ours/rubert", "theirs/rubert"} < models
    logs = {name for name in names_in(output) if name.endswith("1_1_01.jsonl")}
    assert logs == {f"{model}/parus/1_1_01.jsonl" for model in models}
    assert {log.model for log in collect_logs([output]).logs} == models


def test_other_files_are_left_out_and_named(logs: Path, output: Path) -> None:
    for name in ("1_1_02.jsonl.failed", "1_1_02.failed.json", "1_1_03.jsonl.part", "notes.txt"):
        (logs / "parus" / name).write_text("{}")
    done = run_morocco("pack", logs, "-o", output, "--no-check").succeeds()
    assert [warning.rpartition("/")[2] for warning in done.warnings] == [
        "1_1_02.jsonl.failed: skipped, a failed run",
        "1_1_03.jsonl.part: skipped, a run that was cut off or is still going",
    ]
    assert len(names_in(output)) == 3


def test_an_existing_zip_is_replaced_only_with_force(logs: Path, output: Path) -> None:
    output.parent.mkdir()
    output.write_text("submitted")
    error = run_morocco("pack", logs, "-o", output, "--no-check").fails(3)
    assert str(output) in error
    assert "--force" in error
    assert output.read_text() == "submitted"
    run_morocco("pack", logs, "-o", output, "--no-check", "--force").succeeds()
    assert len(names_in(output)) == 3


def test_a_folder_is_not_replaced(logs: Path, tmp_path: Path) -> None:
    error = run_morocco("pack", logs, "-o", tmp_path, "--no-check", "--force").fails(3)
    assert "is a folder; name the zip" in error


def test_a_pipe_is_written_to_and_stays(logs: Path, tmp_path: Path) -> None:
    pack_logs([logs], tmp_path / "logs.zip")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "Nobody reads it" in run_morocco("pack", logs, "-o", pipe, "--no-check").fails(6)
    with read_fifo(pipe) as received:
        done = run_morocco("pack", logs, "-o", pipe, "--no-check").succeeds()
    assert bytes(received) == (tmp_path / "logs.zip").read_bytes()
    assert done.stdout == ""
    assert pipe.is_fifo()


def test_a_zip_inside_the_folder_of_logs_is_not_packed_again(logs: Path) -> None:
    pack_logs([logs], logs / "logs.zip")
    before = (logs / "logs.zip").read_bytes()
    pack_logs([logs], logs / "logs.zip")
    assert (logs / "logs.zip").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("parus/1_1_02.jsonl", b"x" * 70_000, r"1_1_02\.jsonl, line 1: longer than 64 KB"),
        ("parus/1_1_01.json", b" " * 2**20 + b"{}", r"record of .*1_1_01\.jsonl is longer than"),
        ("a\\b/1_1_01.jsonl", b"{}\n", "would be refused:\n.*has a backslash in its path"),
        ("a\x1b/1_1_01.jsonl", b"{}\n", "cannot be printed; rename it"),
        (b"a\xff/1_1_01.jsonl", b"{}\n", "cannot be printed; rename it"),
        ("parus/1_1_02.jsonl", b"{}\n" * 50_000, "would be refused:\n.*more than 200 times"),
    ],
)
def test_what_check_would_refuse_is_not_packed(
    logs: Path, output: Path, name: str | bytes, content: bytes, error: str
) -> None:
    path = logs / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(DataError, match=error):
        pack_logs([logs], output)
    assert list(output.parent.iterdir()) == []


def test_more_logs_than_a_zip_may_hold_are_not_packed(
    logs: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.MAX_ENTRIES == 10_000
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)
    with pytest.raises(DataError, match="would be refused:\n  has 3 entries, more than 2"):
        pack_logs([logs], output)
    assert list(output.parent.iterdir()) == []


def test_more_bytes_than_a_zip_may_hold_are_not_packed(
    logs: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.MAX_UNPACKED == 256 * 2**20
    monkeypatch.setattr(pack, "MAX_UNPACKED", 2**20)
    (logs / "parus" / "1_1_02.jsonl").write_bytes((b" " * 1023 + b"\n") * 2**10)
    with pytest.raises(DataError, match="exceed 1 MB"):
        pack_logs([logs], output)
    assert list(output.parent.iterdir()) == []


FULL_DISK = """
import resource, signal, sys
from morocco.__main__ import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
main()
"""
"""No file may grow beyond 500 bytes, which fails as a full disk does."""


def test_a_full_disk_leaves_no_broken_zip(logs: Path, output: Path) -> None:
    output.parent.mkdir()
    output.write_text("submitted")
    options = ["pack", str(logs), "-o", str(output), "--no-check", "--force"]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *options], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == f"morocco: error: Cannot write {output}: File too large.\n"
    assert [path.read_text() for path in output.parent.iterdir()] == ["submitted"]


def test_a_folder_that_cannot_be_written_to_is_an_error(logs: Path) -> None:
    error = run_morocco("pack", logs, "-o", "/proc/logs.zip", "--no-check").fails(6)
    assert error.startswith("Cannot write /proc/logs.zip: ")


numbers = st.none() | st.integers(0, 99)
texts = st.lists(st.builds(Sample, st.integers(1, 99), *[numbers] * 4), min_size=1).map(
    lambda samples: "".join(sample.to_line() + "\n" for sample in sorted(samples, key=min_key))
)
files = st.dictionaries(
    st.tuples(st.sampled_from(["ruBERT", "b c"]), st.sampled_from(["parus", "ЛиДиРус"])).flatmap(
        lambda parts: st.integers(0, 99).map(lambda index: (*parts, f"2000_32_{index}"))
    ),
    st.tuples(texts, st.none() | st.dictionaries(st.text(), st.integers(-9, 9))),
    min_size=1,
    max_size=4,
)


def min_key(sample: Sample) -> float:
    return sample.timestamp


@given(files)
def test_a_packed_submission_reads_back_the_same(
    written: dict[tuple[str, str, str], tuple[str, dict[str, int] | None]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "logs")
        for (model, task, stem), (text, record) in written.items():
            path = folder / model / task / f"{stem}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if record is not None:
                path.with_suffix(".json").write_text(json.dumps(record))
        packed = pack_logs([folder], Path(name, "logs.zip"))
        before, after = load_submission([folder]), load_submission([Path(name, "logs.zip")])
    assert packed.logs == len(written)
    assert (before.many_models, len(before.entries)) == (after.many_models, len(after.entries))
    for one, other in zip(before.entries, after.entries, strict=True):
        assert (one.path, one.digest, one.record) == (other.path, other.digest, other.record)
        assert one.log is not None
        assert other.log is not None
        assert one.log.samples == other.log.samples
