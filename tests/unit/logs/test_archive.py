"""Zips read in place, the hostile ones above all: what is refused, and in what memory."""

from __future__ import annotations

import os
import random
import re
import stat
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from morocco.errors import DataError
from morocco.logs import archive
from morocco.logs.archive import MAX_ENTRIES, MAX_HELD
from morocco.logs.discovery import collect_logs
from morocco.logs.record import parse_record
from morocco.logs.samples import Sample
from morocco.logs.submission import load_submission
from sample_logs import to_text

pytestmark = pytest.mark.slow

LINES = to_text(Sample(time, ram=5) for time in (1.0, 2.0)).encode()
LOG = "parus/1_1_01.jsonl"
SHORT_LINE = b'{"timestamp":1,"cpu_usage":%d,"ram":%d,"gpu_usage":1,"gpu_ram":%d}\n'
MEMORY = 200 * 10**6
MEASURE = """
import sys
from morocco.__main__ import run
code = run()
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], file=sys.stderr)
sys.exit(code)
"""
"""The peak is that of the program alone: `ru_maxrss` counts the tests that started it, too."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs.zip"


def write_zip(path: Path, *entries: str | zipfile.ZipInfo | tuple[str, bytes]) -> Path:
    """Write a zip of entries, each with the lines of a good log unless it brings its own bytes."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # zipfile says "Duplicate name"
        for entry in entries:
            name, content = entry if isinstance(entry, tuple) else (entry, LINES)
            archive.writestr(name, content)
    return path


def find_refusal(path: Path) -> str:
    """Return why a zip is refused; the reason is the same for every reader."""
    with pytest.raises(DataError) as strict:
        collect_logs([path])
    with pytest.raises(DataError) as lenient:
        load_submission([path])
    assert str(strict.value) == str(lenient.value)
    assert str(path) in str(strict.value)
    return str(strict.value)


def special(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    return entry


@dataclass
class Raw:
    """An entry as its headers describe it, which need not be true."""

    name: str = LOG
    content: bytes = LINES
    flags: int = 0
    method: int = 8
    size: int | None = None
    packed: bytes | None = None
    start: int | None = None

    def pack(self) -> bytes:
        packer = zlib.compressobj(wbits=-15)
        return self.packed or packer.compress(self.content) + packer.flush()

    def facts(self, packed: bytes) -> bytes:
        crc, size = zlib.crc32(self.content), self.size or len(self.content)
        name = len(self.name.encode())
        return struct.pack(
            "<5H3L2H", 20, self.flags, self.method, 0, 33, crc, len(packed), size, name, 0
        )


def write_raw(path: Path, *entries: Raw, before: bytes = b"", count: int | None = None) -> Path:
    """Write a zip that zipfile would not write."""
    body, directory = bytearray(before), bytearray()
    for entry in entries:
        packed, name = entry.pack(), entry.name.encode()
        facts, start = entry.facts(packed), len(body) if entry.start is None else entry.start
        body += b"PK\3\4" + facts + name + packed
        directory += b"PK\1\2\x14\3" + facts + struct.pack("<3H2L", 0, 0, 0, 0, start) + name
    count = len(entries) if count is None else count
    sizes = struct.pack("<2H2LH", count, count, len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\5\6\0\0\0\0" + sizes)
    return path


def test_raw_zips_are_read_unless_they_lie(path: Path) -> None:
    (log,) = collect_logs([write_raw(path, Raw())]).logs
    assert len(log.samples) == 2


def test_a_zip_may_hold_folders_logs_and_records(path: Path) -> None:
    record = "logs/parus/1_1_01.json"
    write_zip(path, special("logs/", stat.S_IFDIR), "logs/parus/", f"{record}l", (record, b"{}"))
    (entry,) = load_submission([path]).entries
    assert (entry.model, entry.record) == ("logs", parse_record({}))


@pytest.mark.parametrize(
    "name",
    [
        "__MACOSX/parus/._1_1_01.jsonl",
        "parus/.DS_Store",
        "README.md",
        "1_1_02.jsonl",
        "parus/1_1_02.jsonl.failed",
        "parus/1_1_02.failed.json",
        "parus/1_1_02.jsonl.part",
        "parus/1_1_02.json",
        "parus/old.jsonl",
        "parus/1_1_01.jsonl/a",
    ],
)
def test_what_is_neither_a_log_nor_a_record_is_refused(path: Path, name: str) -> None:
    refusal = find_refusal(write_zip(path, LOG, name))
    assert f"\n  {name}: is neither a log nor the record of one\n" in refusal
    assert refusal.endswith(
        "`morocco pack LOGS -o logs.zip` packs the logs and their records, and nothing else."
    )


def test_of_many_entries_the_first_are_named_and_the_others_counted(path: Path) -> None:
    refusal = find_refusal(write_zip(path, LOG, *"abcde"))
    assert "\n  a, b, c and 2 more: is neither a log nor the record of one\n" in refusal


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/parus/1_1_01.jsonl", "is an absolute path"),
        ("C:/parus/1_1_01.jsonl", "is an absolute path"),
        ("//host/parus/1_1_01.jsonl", "is an absolute path"),
        ("logs\\parus/1_1_01.jsonl", "has a backslash in its path"),
        ("../parus/1_1_01.jsonl", "has `..` or an empty part in its path"),
        ("a/../parus/1_1_01.jsonl", "has `..` or an empty part in its path"),
        ("../1_1_01.jsonl", "has `..` or an empty part in its path"),
        ("a/../", "has `..` or an empty part in its path"),
        ("./parus/1_1_01.jsonl", "has `..` or an empty part in its path"),
        ("a//parus/1_1_01.jsonl", "has `..` or an empty part in its path"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: Path, name: str, why: str) -> None:
    assert f"{name}: {why}\n" in find_refusal(write_raw(path, Raw(name)))


@pytest.mark.parametrize("name", ["a\x00/1_1_01.jsonl", "\x1b[2J/1_1_01.jsonl", "a\n/1_1_01.jsonl"])
def test_a_name_with_control_characters_is_refused(path: Path, name: str) -> None:
    refusal = find_refusal(write_raw(path, Raw(name)))
    assert refusal.replace("\n", "").isprintable()
    assert re.search("cannot be printed|has two names", refusal)


def test_an_entry_that_occurs_twice_is_refused(path: Path) -> None:
    assert f"{LOG}: occurs twice" in find_refusal(write_zip(path, LOG, LOG))


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_a_link_or_special_file_is_refused(path: Path, mode: int) -> None:
    write_zip(path, special(LOG, mode | 0o777))
    assert f"{LOG}: is a link or another special file" in find_refusal(path)


def test_a_link_in_the_place_of_a_folder_is_refused(path: Path) -> None:
    write_zip(path, LOG, special("logs/", stat.S_IFLNK))
    assert "logs/: is a link or another special file" in find_refusal(path)


def test_an_encrypted_entry_is_refused(path: Path) -> None:
    assert f"{LOG}: is encrypted" in find_refusal(write_raw(path, Raw(flags=1)))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93])
def test_a_method_that_is_not_deflate_is_refused(path: Path, method: int) -> None:
    refusal = find_refusal(write_raw(path, Raw(method=method)))
    assert f"{LOG}: is not compressed with deflate" in refusal


def test_entries_that_share_their_bytes_are_refused(path: Path) -> None:
    write_raw(path, Raw(), Raw("rcb/1_1_01.jsonl", start=0))
    assert f"{LOG}: shares its bytes with another entry" in find_refusal(path)


def test_an_entry_around_another_is_refused(path: Path) -> None:
    write_raw(path, Raw(packed=b"\0\xff\xff" * 100), Raw("rcb/1_1_01.jsonl", start=100))
    assert f"{LOG}: shares its bytes with another entry" in find_refusal(path)


def test_an_entry_that_reaches_into_the_list_of_entries_is_refused(path: Path) -> None:
    write_raw(path, Raw(), Raw("rcb/1_1_01.jsonl", start=0))
    write_raw(path, Raw(start=path.stat().st_size // 4))
    assert "shares its bytes" in find_refusal(path)


@pytest.mark.parametrize("name", [LOG, "parus/1_1_01.json"])
def test_more_than_200_times_its_size_is_refused(path: Path, name: str) -> None:
    write_zip(path, *{LOG, name} - {name}, (name, b" " * 10**6))
    assert f"{name}: unpacks to more than 200 times its size" in find_refusal(path)


def test_a_short_log_may_repeat_itself(path: Path) -> None:
    write_zip(path, (LOG, LINES[: len(LINES) // 2] * 600))
    assert zipfile.ZipFile(path).infolist()[0].compress_size < 300
    assert len(collect_logs([path]).logs[0].samples) == 600


def test_declaring_a_smaller_size_does_not_help(path: Path) -> None:
    write_raw(path, Raw(content=LINES * 20_000, size=1000))
    assert "Bad CRC-32" in find_fault(path)


def test_more_than_256_mb_is_refused(path: Path) -> None:
    packed = os.urandom(40 * 2**10)
    names = (f"parus/1_1_{index}.jsonl" for index in range(40))
    write_raw(path, *(Raw(name, packed=packed, size=7 * 2**20) for name in names))
    assert "\n  unpacks to 280 MB, more than 256 MB\n" in find_refusal(path)


def test_more_than_10000_entries_are_refused(path: Path) -> None:
    names = [f"parus/1_1_{index}.jsonl" for index in range(MAX_ENTRIES + 1)]
    write_zip(path, *names)
    assert "\n  has 10,001 entries, more than 10,000\n" in find_refusal(path)
    write_zip(path, *names[1:])
    assert len(load_submission([path]).entries) == MAX_ENTRIES


def test_more_entries_than_a_plain_zip_can_count_are_refused(path: Path) -> None:
    write_zip(path, *(f"{index}/" for index in range(2**16)))
    assert "entries, more than 10,000\n" in find_refusal(path)


def test_a_false_count_of_entries_is_refused(path: Path) -> None:
    write_raw(path, Raw(), Raw("rcb/1_1_01.jsonl"), count=1)
    assert "has 2 entries, not the 1 that it claims" in find_refusal(path)
    write_raw(path, *(Raw(f"parus/1_1_{index}.jsonl") for index in range(10_001)), count=1)
    assert "has 10,001 entries, not the 1 that it claims" in find_refusal(path)


def test_absurdly_long_names_are_refused_before_they_are_read(path: Path) -> None:
    names = (f"parus/{index}{'x' * 60_000}/" for index in range(80))
    assert "has names of 5 MB, more than 10,000 entries need" in find_refusal(
        write_raw(path, *map(Raw, names))
    )


@pytest.mark.parametrize("before", [b"MZ", b"PK\3\4 and more"])
def test_data_before_the_first_entry_is_refused(path: Path, before: bytes) -> None:
    assert "other data before its first entry" in find_refusal(
        write_raw(path, Raw(), before=before)
    )
    write_raw(path, Raw())
    path.write_bytes(before + path.read_bytes())
    assert "other data before its first entry" in find_refusal(path)


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9, 0.99])
def test_a_zip_that_was_cut_short_is_refused(path: Path, kept: float) -> None:
    content = write_zip(path, LOG, "rcb/1_1_01.jsonl").read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    assert "logs.zip: it is cut short, or something was appended to it." in find_refusal(path)


def test_data_after_the_end_is_refused(path: Path) -> None:
    path.write_bytes(write_zip(path, LOG).read_bytes() + b"more")
    assert "something was appended to it" in find_refusal(path)


def find_fault(path: Path) -> str:
    """Return what is wrong with a log: an error for `stats`, a finding for `check`."""
    with pytest.raises(DataError) as strict:
        collect_logs([path])
    (entry,) = load_submission([path]).entries
    assert (entry.log, entry.fault is None) == (None, False)
    assert f"{path}/{LOG}" in str(strict.value)
    assert str(entry.fault).removeprefix("cannot be read: ") in str(strict.value)
    return str(strict.value)


def test_a_line_over_64_kb_is_named(path: Path) -> None:
    write_zip(path, (LOG, LINES + os.urandom(2**16).hex().encode()))
    assert find_fault(path).endswith("line 3: longer than 64 KB, too long for a line of a log.")


def test_a_wrong_checksum_is_a_fault_of_its_log_alone(path: Path) -> None:
    write_zip(path, LOG, "rcb/1_1_01.jsonl")
    content = path.read_bytes()
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    broken, good = load_submission([path]).entries
    assert (broken.log, broken.digest) == (None, "")
    assert good.log is not None


def test_whatever_byte_is_wrong_the_reader_reads_or_says_why_not(path: Path) -> None:
    content = write_zip(path, LOG, "rcb/1_1_01.jsonl", ("rcb/1_1_01.json", b"{}")).read_bytes()
    for index in range(len(content)):
        path.write_bytes(content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :])
        for read in (collect_logs, load_submission):
            with suppress(DataError):
                read([path])


def test_a_path_that_no_disk_can_hold_is_refused(path: Path) -> None:
    deep, long = f"{'a/' * 2100}{LOG}", f"{'a' * 256}/{LOG}"
    refusal = find_refusal(write_zip(path, f"{'a/' * 2000}{LOG}", deep, long))
    assert refusal.count(": has a longer path than a disk can hold") == 1


def test_models_and_tasks_of_which_no_report_could_be_made_are_refused(path: Path) -> None:
    names = [f"{number}/task{number}/1_1_01.jsonl" for number in range(101)]
    assert len(load_submission([write_zip(path, *names[:100])]).entries) == 100
    refusal = find_refusal(write_zip(path, *names))
    assert "has 101 models x 101 tasks, more than 10,000" in refusal


def make_lines(count: int, seed: int = 0) -> bytes:
    """Return this many of the shortest lines, different enough not to be a bomb."""
    numbers = random.Random(seed).choices(range(10), k=3 * count)
    return b"".join(SHORT_LINE % triple for triple in zip(*[iter(numbers)] * 3, strict=True))


def write_long_log(path: Path, lines: int) -> None:
    """Write nearly all lines into one log."""
    write_zip(path, LOG, ("parus/2000_32_01.jsonl", make_lines(10_000) * (lines // 10_000)))


def write_many_logs(path: Path, count: int) -> None:
    """Write this many logs, all different, each beside its record."""
    names = [f"task{index // 100}/{index % 2}_1_{index % 100:02d}" for index in range(count)]
    logs = ((f"{name}.jsonl", make_lines(50, seed)) for seed, name in enumerate(names))
    write_zip(path, *logs, *((f"{name}.json", b'{"format": 1}') for name in names))


def write_worst_records(path: Path) -> None:
    """Records that take many times their size when they are parsed."""
    noise = os.urandom(5000).hex().encode()
    record = b'{"noise": "%s", "lists": [%s]}' % (noise, b"[[[[]]]]," * 110_000 + b"0")
    names = [f"parus/1_1_{index}.json" for index in range(100)]
    write_zip(path, *(f"{name}l" for name in names), *((name, record) for name in names))


def write_longest_line(path: Path) -> None:
    """One line of 250 MB."""
    noise = os.urandom(300).replace(b"\n", b" ")
    write_zip(path, LOG, ("parus/2000_32_01.jsonl", (noise + b" " * 40_000) * 6000))


def write_longest_list(path: Path) -> None:
    """A list of many entries, counted as one."""
    write_raw(path, *(Raw(f"{index}/", b"") for index in range(70_000)), count=1)


@pytest.mark.parametrize("command", ["check", "stats"])
@pytest.mark.parametrize(
    ("write", "few", "most"),
    [(write_long_log, 100_000, 1_500_000), (write_many_logs, 1000, MAX_ENTRIES // 2)],
)
def test_the_most_lines_and_logs_that_a_zip_may_hold_take_less_than_200_mb(
    path: Path, write: Callable[[Path, int], None], few: int, most: int, command: str
) -> None:
    many = 2 * few  # memory grows by the same amount with each line, and with each log
    peaks = []
    for count in (few, many):
        write(path, count)
        peaks += measure_peaks(path, command)
    assert peaks[0] + (peaks[1] - peaks[0]) * (most - few) / (many - few) < MEMORY


def test_more_lines_than_fit_in_the_memory_allowed_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_HELD", MAX_HELD // 100)
    write_long_log(path, 10_000)
    assert len(load_submission([path]).entries) == 2
    write_long_log(path, 20_000)
    assert "more lines and records than fit in 1 MB of memory" in find_refusal(path)


@pytest.mark.parametrize("write", [write_worst_records, write_longest_line, write_longest_list])
def test_no_zip_takes_more_than_200_mb(path: Path, write: Callable[[Path], None]) -> None:
    write(path)
    assert max(measure_peaks(path, "check", "stats")) < MEMORY
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def measure_peaks(path: Path, *commands: str) -> list[int]:
    """Return the most memory, in bytes, that each command takes to read a zip."""
    programs = [measure(command, path) for command in commands]
    printed = [program.communicate()[1] for program in programs]
    assert "Traceback" not in "".join(printed)
    return [int(text.split()[-1]) * 1024 for text in printed]


def measure(command: str, path: Path) -> subprocess.Popen[str]:
    """Start a command; the last word on its stderr is the most memory it took, in KB."""
    return subprocess.Popen(
        [sys.executable, "-c", MEASURE, command, str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
