"""Submissions: what cannot be read is part of them, not an error."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from morocco.errors import DataError
from morocco.logs.discovery import collect_logs
from morocco.logs.log import LogFault
from morocco.logs.record import parse_record
from morocco.logs.samples import Sample
from morocco.logs.submission import Entry, load_submission

TEXT = "".join(Sample(time, ram=5).to_line() + "\n" for time in (1.0, 2.0))
LOG = "parus/1_1_01.jsonl"


def write(folder: Path, name: str = LOG, content: str | bytes = TEXT) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load_one(folder: Path) -> Entry:
    (entry,) = load_submission([folder]).entries
    return entry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "logs")
    return tmp_path / "logs"


def zip_up(folder: Path) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*.json*")):
            archive.write(file, file.relative_to(folder))
    return path


def test_a_good_log_comes_with_its_record_and_digest(folder: Path) -> None:
    write(folder, "parus/1_1_01.json", '{"task": "parus"}')
    entry = load_one(folder)
    assert entry.name == str(folder / LOG)
    assert (entry.model, str(entry.path)) == ("logs", LOG)
    assert (entry.fault, entry.record, entry.record_fault) == (
        None,
        parse_record({"task": "parus"}),
        None,
    )
    assert entry.digest == sha256(TEXT.encode()).hexdigest()
    assert entry.log == collect_logs([folder]).logs[0]


def test_a_log_without_a_record_has_none(folder: Path) -> None:
    entry = load_one(folder)
    assert (entry.record, entry.record_fault) == (None, None)


@pytest.mark.parametrize(
    ("content", "kind", "line", "part"),
    [
        ("", "empty", None, "run `morocco bench` again"),
        (TEXT + "oops\n" + TEXT, "unreadable", 3, "not JSON: 'oops'"),
        (TEXT + '{"timestamp": 1', "unreadable", 3, "cut short: '{\"timestamp\": 1'"),
        (TEXT + TEXT, "backward", 3, "timestamp"),
        (TEXT + "x" * 10**6, "unreadable", 3, "longer than 64 KB"),
        (TEXT + "[" * 60_000 + "\n", "unreadable", 3, f"'{'[' * 57}...'"),
    ],
)
def test_a_log_that_cannot_be_read_is_an_entry_with_its_fault(
    folder: Path, content: str, kind: str, line: int | None, part: str
) -> None:
    write(folder, content=content)
    write(folder, "parus/1_1_01.json", "{}")
    entry = load_one(folder)
    assert (entry.log, entry.record) == (None, parse_record({}))
    assert entry.fault is not None
    assert (entry.fault.kind, entry.fault.line) == (kind, line)
    assert part in entry.fault.message
    assert entry.digest == sha256(content.encode()).hexdigest()


@pytest.mark.parametrize("keys", [1, 3000])
def test_a_fault_is_short_and_safe_to_print(folder: Path, keys: int) -> None:
    line = json.dumps({f"\x1b[2J{key}" + "x" * (50_000 // keys): 1 for key in range(keys)})
    write(folder, content=line + "\n")
    fault = str(load_one(folder).fault)
    assert len(fault) < 400
    assert fault.isprintable()


def test_one_bad_log_does_not_stop_the_others(folder: Path) -> None:
    write(folder, "rcb/1_1_01.jsonl", "oops")
    good, bad = load_submission([folder]).entries
    assert (good.fault, bad.log) == (None, None)


def test_a_log_with_a_read_error_is_an_entry_too(folder: Path) -> None:
    (folder / "rcb").mkdir()
    (folder / "rcb" / "1_1_01.jsonl").symlink_to("/proc/self/mem")
    broken = load_submission([folder]).entries[1]
    assert (broken.log, broken.digest) == (None, "")
    assert broken.fault == LogFault("unreadable", "cannot be read: Input/output error")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "not JSON"),
        ('{"a": 1', "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        ("[1]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"a": NaN}', "NaN is not a usable number"),
        ('{"a": -Infinity}', "-Infinity is not a usable number"),
        ('{"a": 1e999}', "1e999 is not a usable number"),
        ('{"a": 1' + "0" * 5000 + "}", "10000000000000000000 is not a usable number"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": "' + "x" * 2**20 + '"}', "longer than 1 MB, too long for a record"),
    ],
)
def test_an_unusable_record_has_its_fault(folder: Path, content: str | bytes, fault: str) -> None:
    write(folder, "parus/1_1_01.json", content)
    entry = load_one(folder)
    assert entry.log is not None
    assert (entry.record, entry.record_fault) == (None, fault)


def test_a_zip_is_the_same_submission_as_the_folder_it_was_made_of(folder: Path) -> None:
    write(folder, "parus/1_1_01.json", '{"task": "энергия", "energy": 1.5}')
    write(folder, "rcb/1_1_01.jsonl", "oops")

    def show(path: Path) -> list[tuple[Any, ...]]:
        return [
            (entry.model, entry.path, entry.fault, entry.digest, entry.record)
            for entry in load_submission([path]).entries
        ]

    assert show(zip_up(folder)) == show(folder)


def test_entries_are_sorted_by_model_and_path(tmp_path: Path) -> None:
    for name in ("b/parus/1_1_01.jsonl", "a/rcb/1_1_01.jsonl", "a/parus/2_1_01.jsonl"):
        write(tmp_path, name)
    submission = load_submission([tmp_path / "b", tmp_path / "a"])
    assert [(entry.model, entry.path.task) for entry in submission.entries] == [
        ("a", "parus"),
        ("a", "rcb"),
        ("b", "parus"),
    ]
    assert submission.many_models


def test_skipped_files_are_remarked_on(folder: Path) -> None:
    write(folder, "parus/1_1_02.jsonl.failed")
    (remark,) = load_submission([folder]).remarks
    assert "parus/1_1_02.jsonl.failed: skipped, a failed run" in remark


def test_a_path_that_does_not_exist_or_holds_no_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere does not exist"):
        load_submission([tmp_path / "nowhere"])
    with pytest.raises(DataError, match="holds no log"):
        load_submission([tmp_path])


def test_failed_runs_are_listed_with_their_records(tmp_path: Path) -> None:
    write(tmp_path / "good")
    write(tmp_path / "good", "parus/2000_32_01.jsonl.failed", "")
    write(tmp_path / "good", "parus/2000_32_01.failed.json", '{"exit_code": 1}')
    write(tmp_path / "bad", "rcb/1_1_02.jsonl.failed", "")
    write(tmp_path / "bad", "rcb/notes.jsonl.failed", "")
    found = load_submission([tmp_path])
    assert [(run.model, str(run.path), run.record) for run in found.failed] == [
        ("bad", "rcb/1_1_02.jsonl", None),
        ("good", "parus/2000_32_01.jsonl", parse_record({"exit_code": 1})),
    ]
    assert not found.many_models
    assert [entry.model for entry in found.entries] == ["good"]
    assert len(found.remarks) == 3


def test_failed_runs_alone_are_not_a_submission(tmp_path: Path) -> None:
    write(tmp_path, "parus/1_1_01.jsonl.failed", "")
    with pytest.raises(DataError, match="holds no log"):
        load_submission([tmp_path])
