"""From the paths a user gives to logs: files, folders, zips, several models."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from morocco.errors import DataError
from morocco.logs.discovery import Collection, collect_logs
from morocco.logs.log import group_by_task
from morocco.logs.samples import Sample
from sample_logs import to_text, write_samples

SAMPLES = [Sample(time, ram=5) for time in (1.0, 2.0)]
TEXT = to_text(SAMPLES)
LOGS = ("parus/1_1_01.jsonl", "parus/2000_32_01.jsonl", "rcb/1_1_01.jsonl")


def write_logs(folder: Path, *names: str) -> Path:
    for name in names or LOGS:
        write_samples(folder / name, SAMPLES)
    return folder


def write_zip(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or LOGS:
            archive.writestr(name, TEXT)
    return path


def list_logs(collection: Collection) -> list[tuple[str, str]]:
    return [(log.model, str(log.path)) for log in collection.logs]


def test_a_folder_is_searched_at_any_depth(tmp_path: Path) -> None:
    write_logs(tmp_path / "deep" / "rubert")
    assert list_logs(collect_logs([tmp_path])) == [("rubert", name) for name in LOGS]


def test_the_model_of_a_task_folder_is_its_parent(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "rubert") / "rcb"
    assert list_logs(collect_logs([folder])) == [("rubert", "rcb/1_1_01.jsonl")]


def test_log_files_can_be_given(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "rubert")
    found = collect_logs([folder / name for name in reversed(LOGS)])
    assert list_logs(found) == [("rubert", name) for name in LOGS]
    assert found.logs[0].name == str(folder / LOGS[0])
    assert found.logs[0].run_time == 1.0


def test_a_bare_file_name_has_its_task_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_logs(tmp_path / "rubert") / "parus")
    (log,) = collect_logs([Path("1_1_01.jsonl")]).logs
    assert (log.name, log.model, log.path.task) == ("1_1_01.jsonl", "rubert", "parus")


def test_messages_name_files_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_logs(tmp_path))
    assert collect_logs([Path("parus")]).logs[0].name == "parus/1_1_01.jsonl"


def test_a_zip_with_model_folders_names_the_models(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "all.zip", "a/parus/1_1_01.jsonl", "top/b/parus/1_1_01.jsonl")
    found = collect_logs([path])
    assert list_logs(found) == [("a", "parus/1_1_01.jsonl"), ("b", "parus/1_1_01.jsonl")]
    assert found.many_models
    assert found.logs[0].name == f"{path}/a/parus/1_1_01.jsonl"


def test_a_zip_without_model_folders_is_the_model(tmp_path: Path) -> None:
    found = collect_logs([write_zip(tmp_path / "rubert.zip")])
    assert list_logs(found) == [("rubert", name) for name in LOGS]
    assert not found.many_models


def test_a_zip_reads_as_the_folder_it_was_made_of(tmp_path: Path) -> None:
    in_folder = collect_logs([write_logs(tmp_path / "here" / "rubert")]).logs
    in_zip = collect_logs([write_zip(tmp_path / "rubert.zip")]).logs
    assert [log.samples for log in in_folder] == [log.samples for log in in_zip]


def test_several_models_are_distinguished_and_sorted(tmp_path: Path) -> None:
    paths = [write_logs(tmp_path / name, LOGS[0]) for name in ("rubert", "a-model")]
    found = collect_logs(paths)
    assert [log.model for log in found.logs] == ["a-model", "rubert"]
    assert found.many_models


def test_one_model_in_several_paths_is_one_model(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "rubert")
    found = collect_logs([folder / "parus", folder / "rcb"])
    assert len(found.logs) == 3
    assert not found.many_models


def test_models_that_share_a_folder_name_get_more_of_their_path(tmp_path: Path) -> None:
    paths = [write_logs(tmp_path / lab / "rubert", LOGS[0]) for lab in ("ours", "theirs")]
    found = collect_logs([*paths, write_logs(tmp_path / "other", LOGS[0])])
    models = [log.model for log in found.logs]
    assert len(set(models)) == 3
    assert {"ours/rubert", "theirs/rubert"} < set(models)


def test_zips_that_share_a_name_get_more_of_their_path(tmp_path: Path) -> None:
    paths = [write_zip(tmp_path / lab / "logs.zip", LOGS[0]) for lab in ("ours", "theirs")]
    first, second = collect_logs(paths).logs
    assert first.model.startswith("ours/logs")
    assert second.model.startswith("theirs/logs")


def test_files_that_are_not_finished_logs_are_remarked_on(tmp_path: Path) -> None:
    write_logs(
        tmp_path,
        "parus/1_1_01.jsonl",
        "parus/1_1_02.jsonl.failed",
        "parus/1_1_03.jsonl.part",
        "parus/old.jsonl",
    )
    (tmp_path / "parus" / "1_1_01.json").write_text("{}")
    found = collect_logs([tmp_path])
    assert len(found.logs) == 1
    failed, part, misnamed = found.remarks
    assert failed == f"{tmp_path}/parus/1_1_02.jsonl.failed: skipped, a failed run"
    assert "1_1_03.jsonl.part: skipped, a run that was cut off" in part
    assert "old.jsonl: skipped, not named <task>/<input>_<batch>_<index>.jsonl" in misnamed


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere does not exist"):
        collect_logs([tmp_path / "nowhere"])


@pytest.mark.parametrize("name", ["read.me", "parus/1_1_02.jsonl.failed"])
def test_a_folder_without_a_log_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="folder holds no log"):
        collect_logs([write_logs(tmp_path / "folder", name)])


def test_a_zip_without_a_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"logs\.zip holds no log"):
        collect_logs([write_zip(tmp_path / "logs.zip", "logs/", "logs/parus/")])


def test_one_good_path_does_not_hide_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty holds no log"):
        collect_logs([write_logs(tmp_path / "rubert"), tmp_path / "empty"])


def test_a_file_that_is_not_named_like_a_log_is_an_error(tmp_path: Path) -> None:
    write_logs(tmp_path, "parus/log.jsonl")
    with pytest.raises(DataError, match=r"log\.jsonl is not named like a log: <task>/"):
        collect_logs([tmp_path / "parus" / "log.jsonl"])


def test_a_broken_log_is_named_with_its_line(tmp_path: Path) -> None:
    (write_logs(tmp_path) / "parus" / "1_1_01.jsonl").write_text(TEXT + '{"timestamp": 1')
    with pytest.raises(DataError, match=r"parus/1_1_01\.jsonl, line 3: .*cut short"):
        collect_logs([tmp_path])


def test_a_broken_log_in_a_zip_is_named_with_its_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("parus/1_1_01.jsonl", TEXT + "oops\n")
    with pytest.raises(DataError, match=r"logs\.zip/parus/1_1_01\.jsonl, line 3: not JSON"):
        collect_logs([tmp_path / "logs.zip"])


def test_a_zip_entry_with_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("parus/1_1_01.jsonl", TEXT)
    path.write_bytes(path.read_bytes().replace(b'"ram": 5', b'"ram": 6'))
    with pytest.raises(DataError, match=r"Cannot read .*1_1_01\.jsonl: Bad CRC-32"):
        collect_logs([path])


def test_a_zip_entry_that_cannot_be_unpacked_is_an_error(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "logs.zip", LOGS[0])
    content = path.read_bytes()
    start = content.index(LOGS[0].encode()) + len(LOGS[0])
    path.write_bytes(content[:start] + b"\xff" * 20 + content[start + 20 :])
    with pytest.raises(DataError, match=r"Cannot read .*1_1_01\.jsonl"):
        collect_logs([path])


def test_a_zip_beside_its_folder_is_another_model(tmp_path: Path) -> None:
    paths = [write_logs(tmp_path / "rubert", LOGS[0]), write_zip(tmp_path / "rubert.zip", LOGS[0])]
    assert [log.model for log in collect_logs(paths).logs] == ["rubert", "rubert.zip"]


def test_a_path_inside_another_adds_nothing(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "rubert")
    assert collect_logs([folder, folder / "parus"]) == collect_logs([folder])


@pytest.mark.parametrize("again", ["../rubert", "parus/.."])
def test_a_log_reached_by_two_paths_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    folder = write_logs(tmp_path / "rubert")
    monkeypatch.chdir(folder)
    found = collect_logs([folder, Path(again)])
    assert (len(found.logs), found.many_models) == (3, False)


def test_a_broken_zip_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "logs.zip")
    path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x09\x09"))
    with pytest.raises(DataError, match=r"^Cannot read .*logs\.zip: "):
        collect_logs([path])


def test_logs_are_grouped_by_model_and_task(tmp_path: Path) -> None:
    found = collect_logs([write_logs(tmp_path / "b"), write_logs(tmp_path / "a", LOGS[0])])
    groups = group_by_task(found.logs)
    assert {key: len(logs) for key, logs in groups.items()} == {
        ("a", "parus"): 1,
        ("b", "parus"): 2,
        ("b", "rcb"): 1,
    }
