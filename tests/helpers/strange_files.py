"""Files as strangers may send them, nearly right or not at all, and the commands that read them."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import strategies as st

from morocco.__main__ import run
from morocco.report.model import Readings
from morocco.tasks import TASKS
from sample_logs import BEGIN, make_gpu

Draw = st.DrawFn
Files = Mapping[str, bytes]

TIMEOUT = 30
"""Seconds after which a command is broken off."""
_ZIP, _LOGS, _FILE = "{folder}/logs.zip", "{folder}/logs", "{folder}/file"


@dataclass(frozen=True)
class Case:
    """Files, and the commands to be run on them; `{folder}` stands for where the files are."""

    files: Files
    commands: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Outcome:
    """What came of a command."""

    words: Sequence[str]
    code: int | None
    seconds: float
    """Of CPU time: what else the machine does shall not matter."""
    fault: str | None
    """A traceback, or what was printed that should not have been."""


# Values

texts = st.sampled_from(
    ["", "parus", "a/b", "..", "\x1b[2J", "a\nVALID", "\r", "\x7f", "\u202e", "=1+1", "|`<b>$x_1$"]
) | st.text(max_size=8)
numbers = (
    st.sampled_from([0, 1, -1, 2, 1.5, 1e-300, 5e-324, 1e308, 2**53, 2**60, 2**63, 10**30])
    | st.floats(0, 100)
    | st.floats()
    | st.integers()
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
raw = st.binary(max_size=60) | st.text(max_size=60).map(
    lambda text: text.encode("utf-8", "replace")
)


@st.composite
def spoilt(draw: Draw, good: Any, chance: int = 3) -> Any:
    """Return a JSON value like `good`, some parts of which have been replaced or left out."""
    if draw(st.integers(0, chance)) == 0:
        alike = numbers if isinstance(good, (int, float)) else texts
        return draw(values | alike if isinstance(good, (dict, list)) else alike | alike | values)
    if isinstance(good, dict) and good:
        key = draw(st.sampled_from(sorted(good)))
        rest = {name: value for name, value in good.items() if name != key}
        kept = {} if draw(st.integers(0, 4)) == 0 else {key: draw(spoilt(good[key], 1))}
        return rest | kept
    if isinstance(good, list) and good:
        return [*good[1:], draw(spoilt(good[0], 1))]
    return good


def _to_json(value: Any) -> bytes:
    return json.dumps(value).encode()


# Logs, records and zips

_READINGS: Mapping[str, Sequence[float | None]] = {
    "cpu_usage": [0, 0.5, 1e-300, 4.0, 65_536, None],
    "ram": [0, 1, 5.5, 2**20, 2**31, 2**60, None],
    "gpu_usage": [0, 0.5, 1, 100, None],
    "gpu_ram": [0, 1, 2**30, 2**60, None],
}
_IMPOSSIBLE = [5e-324, 1e-300, 1e18, 2**60 + 1, 1e300, -1]
_STEPS, _LONG_STEPS = [0, 1e-6, 0.0005, 0.3, 0.3, 1], [0, 0.001, 0.3, 5, 5, 1000, 1e9]
_STARTS = st.sampled_from([1, 1.5, BEGIN, BEGIN, BEGIN + 50, 7e9])


@st.composite
def logs(draw: Draw, steps: Sequence[float] = _LONG_STEPS) -> bytes:
    """Return a log: mostly one that can be read, with extreme values."""
    oddity = draw(st.integers(0, 40))
    if oddity == 0:
        return draw(raw)
    moment, lines = draw(_STARTS), []
    more = _IMPOSSIBLE if oddity < 4 else []
    for step in draw(st.lists(st.sampled_from([*steps, *more]), min_size=1, max_size=5)):
        readings = {key: draw(st.sampled_from([*usual, *more])) for key, usual in _READINGS.items()}
        lines.append({"timestamp": moment, **readings})
        moment = step if step in more else moment + step
    if oddity == 4:
        lines.append(draw(spoilt(lines[-1], 6)))
    return b"".join(_to_json(line) + b"\n" for line in lines)


_RECORD: dict[str, Any] = {
    "format": 1,
    "target": {"target": "rubert", "image_id": "sha256:1f", "command": ["a"]},
    "arguments": {"gpus": "auto", "rate": 3.0},
    "task": "parus",
    "input_size": 1,
    "batch_size": 1,
    "data": {"path": "val.jsonl", "sha256": "1f"},
    "host": {"cpu": "Broadwell", "cores": 8, "ram": 2**36, "name": "gpu-1"},
    "gpus": [make_gpu()],
    "gpus_before": {"used": [0], "processes": [{"gpu": 0, "pid": 1, "name": "x", "memory": 5}]},
    "started": "2022-06-12T02:13:20+00:00",
    "run_time": 0.6,
    "exit_code": 0,
    "records_fed": 1,
    "predictions": {"count": 1, "sha256": "1f"},
    "gpu_users": [{"gpu": 0, "pid": 1, "name": "x", "memory": 5}],
    "gpu_clocks": [{"gpu": 0, "busy": 9.0, "sm_clock": 1000, "throttling": {"slowdown": 1.0}}],
    "peaks": {"ram": 2**30, "gpu_ram": 2**30, "ram_source": "pss"},
    "energy": 100.0,
    "load": {"cores": 2, "seconds": 9.0, "foreign_cores": 1.0, "throttling": {"periods": 1}},
    "warnings": ["x"],
    "warning_codes": ["y"],
    "failure": None,
    "machine": "3f0c",
}
records = spoilt(_RECORD, 15).map(_to_json) | raw


def _often(good: Sequence[str]) -> st.SearchStrategy[str]:
    """Return mostly good names: one odd name in a zip is enough for it to be refused."""
    return st.integers(0, 19).flatmap(lambda n: st.sampled_from(good) if n else texts)


_MODELS, _TASKS = _often(["m", "n", "=x"]), _often(["parus", "parus", "rcb", "my task"])
_SIZES = st.sampled_from(["1_1", "1_1", "9_2", "9_2", "9_2", "5_5", "999999999_1"] * 5 + ["0_32"])


@st.composite
def log_files(draw: Draw) -> dict[str, bytes]:
    """Return logs and records of a model or two, by their path."""
    files = {}
    for model, task in draw(st.lists(st.tuples(_MODELS, _TASKS), min_size=1, max_size=2)):
        for index, size in enumerate(["1_1", "9_2", *draw(st.lists(_SIZES, max_size=3))]):
            name = f"{model}/{task}/{size}_{index:02d}"
            files[f"{name}.jsonl"] = draw(logs(_STEPS if size == "1_1" else _LONG_STEPS))
            if draw(st.booleans()):
                files[f"{name}.json"] = draw(records)
    return files


def make_zip(files: Files) -> bytes:
    """Return a zip of files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.encode("utf-8", "replace").decode(), text)
    return content.getvalue()


@st.composite
def zips(draw: Draw) -> bytes:
    """Return a zip, a few bytes of which may have been changed."""
    content = bytearray(make_zip(draw(log_files())))
    if draw(st.integers(0, 9)) == 0:
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content)


_READERS = (
    ["check"],
    ["check", "--format", "json"],
    ["stats"],
    ["stats", "--format", "table"],
    ["stats", "--format", "csv", "--clock", "gpu"],
    ["report"],
    ["report", "--by", "gpu", "--price", "3"],
    ["report", "--baseline", "m", "-o", "{folder}/out.json"],
    ["report", "--baseline", "m", "--save-baseline", "{folder}/out.json", "-o", "{folder}/o.html"],
    *(["report", "-o", f"{{folder}}/out{suffix}"] for suffix in (".html", ".md", ".csv", ".json")),
    ["pack", "-o", "{folder}/out.zip", "--no-check", "--force"],
)


@st.composite
def submissions(draw: Draw) -> Case:
    """Return a zip or a folder of logs, and what reads it."""
    commands = draw(st.lists(st.sampled_from(_READERS), min_size=1, max_size=3, unique_by=id))
    if draw(st.booleans()):
        return Case({"logs.zip": draw(zips())}, [[*words, _ZIP] for words in commands])
    files = {f"logs/{name}": content for name, content in draw(log_files()).items()}
    return Case(files, [[*words, _LOGS] for words in commands])


@st.composite
def plots(draw: Draw) -> Case:
    """Return a zip of logs to be plotted."""
    return Case({"logs.zip": draw(zips())}, [["plot", _ZIP, "{folder}/{{model}}{{task}}.svg"]])


# Settings

_GOOD_LOG = b"".join(
    _to_json({"timestamp": BEGIN + at, "cpu_usage": 1, "ram": 5, "gpu_usage": None, "gpu_ram": 7})
    + b"\n"
    for at in (0.0, 0.5, 9.0)
)
_GOOD_LOGS = {
    "logs/m/parus/1_1_01.jsonl": _GOOD_LOG.replace(b"9.0", b"4.0"),
    "logs/m/parus/9_2_01.jsonl": _GOOD_LOG,
    "logs/n/parus/1_1_01.jsonl": _GOOD_LOG,
}


def _to_toml(value: Any) -> str:
    """Return a value as TOML; what TOML lacks comes out wrong, which is as well."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_to_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_to_toml, value)) + "]"
    return json.dumps(value)


def _tables(good: dict[str, Any]) -> st.SearchStrategy[bytes]:
    def write(table: Any) -> bytes:
        rows = table if isinstance(table, dict) else {"x": table}
        lines = (f"{json.dumps(key)} = {_to_toml(value)}\n" for key, value in rows.items())
        return "".join(lines).encode("utf-8", "replace")

    return spoilt(good, 12).map(write) | raw


_PROFILE = {
    "tasks": ["parus"],
    "name": "x",
    "runs": 3,
    "sizes": ["9_2"],
    "machine": {"gpu": "V100", "gpus": 1, "gpu_ram": 32, "cores": 8, "ram": 96},
    "thresholds": {"spread": 0.1, "gap_periods": 3.0, "slow_clock": 0.2},
}
_SUITE = {
    "tasks": ["parus"],
    "input-size": 9,
    "batch-size": 2,
    "repeats": 1,
    "rate": 3,
    "timeout": "5m",
    "env": ["A=1"],
    "sizes": {"parus": {"input-size": 5}},
    "models": {"m": "exec:true", "n": {"target": "exec:true", "tasks": ["parus"]}},
}
_SCORES = {"m": {"overall": 0.5, "tasks": {"parus": {"value": 0.5}}}, "n": 0.4}
_READINGS_OF_TASK = {name: [1.0, 2.0] for name in Readings.__annotations__} | {
    "input_size": 9,
    "batch_size": 2,
    "init_times": [4.0, 4.1],
    "run_times": [9.0, 9.1],
}
_BASELINE = {
    "format": 1,
    "morocco": "1.0",
    "model": "old",
    "clock": "log",
    "machines": {"3f0c": "x"},
    "tasks": {"parus": _READINGS_OF_TASK},
}
_SETTINGS: tuple[tuple[st.SearchStrategy[bytes], list[str]], ...] = (
    (_tables(_PROFILE), ["check", _LOGS, "--profile", _FILE]),
    (_tables(_PROFILE), ["pack", _LOGS, "--profile", _FILE, "-o", "{folder}/out.zip"]),
    (
        _tables(_SUITE),
        ["suite", "{folder}/data", "--config", _FILE, "--dry-run", "--logs", _LOGS, "--gpus=none"],
    ),
    (_tables({"parus": 2.5, "rcb": 0}), ["report", _LOGS, "--weights", _FILE]),
    (spoilt(_SCORES, 9).map(_to_json) | raw, ["report", _LOGS, "--scores", _FILE]),
    (
        spoilt(_SCORES, 9).map(_to_json),
        ["report", _LOGS, "--scores", _FILE, "-o", "{folder}/out.html"],
    ),
    (spoilt(_BASELINE, 9).map(_to_json) | raw, ["report", _LOGS, "--baseline", _FILE]),
    (
        spoilt(_BASELINE, 9).map(_to_json),
        ["report", _LOGS, "--baseline", _FILE, "-o", "{folder}/out.json"],
    ),
)


@st.composite
def settings_files(draw: Draw) -> Case:
    """Return a profile, a suite file, weights, scores or a baseline beside good logs."""
    content, words = draw(st.sampled_from(_SETTINGS))
    data = {"data/PARus/val.jsonl": b'{"idx": 0}\n'}
    return Case({**_GOOD_LOGS, **data, "file": draw(content)}, [words])


# Predictions

_ANSWERS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "danetqa": ({"idx": 0, "label": True}, {"idx": 0, "label": "true"}),
    "lidirus": (
        {"idx": 0, "label": "entailment", "logic": "Negation;Negation"},
        {"idx": 0, "label": "not_entailment"},
    ),
    "muserc": (
        {"idx": 0, "passage": {"questions": [{"idx": 0, "answers": [{"idx": 0, "label": 1}]}]}},
        {"idx": 0, "passage": {"questions": [{"idx": 0, "answers": [{"idx": 0, "label": 0}]}]}},
    ),
    "rcb": ({"idx": 0, "label": "neutral"}, {"idx": 0, "label": "contradiction"}),
    "rucos": (
        {"idx": 0, "passage": {}, "qas": [{"answers": [{"text": "Кот"}]}]},
        {"idx": 0, "label": "кот"},
    ),
}


@st.composite
def answers(draw: Draw) -> Case:
    """Return predictions and labels of a task."""
    task = draw(st.sampled_from(sorted(_ANSWERS)))
    gold, prediction = _ANSWERS[task]
    lines = draw(st.lists(spoilt(prediction, 6).map(_to_json) | raw, max_size=2))
    files = {
        f"predictions/{task}.jsonl": b"\n".join([_to_json(prediction), *lines][-2:]),
        f"data/{TASKS[task].title}/{TASKS[task].validation}": _to_json(draw(spoilt(gold, 6))),
    }
    form = draw(st.sampled_from(["json", "table"]))
    places = ["{folder}/predictions", "{folder}/data"]
    return Case(files, [["score", *places, "--format", form, "--missing", "wrong"]])


cases = st.one_of(submissions(), submissions(), settings_files(), answers())


# Running


def run_case(case: Case, folder: Path) -> Iterator[Outcome]:
    """Write the files of a case into an empty folder and run its commands, in this process."""
    for name, content in case.files.items():
        _write(folder, name, content)
    for words in case.commands:
        yield run_in_process([word.format(folder=folder) for word in words])


def _write(folder: Path, name: str, content: bytes) -> None:
    path = Path(os.path.normpath(folder / name.replace("\0", "0")))
    if folder in path.parents:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (OSError, UnicodeError):  # a name that no disk can hold, or that is a folder's
            pass


def run_in_process(words: Sequence[str]) -> Outcome:
    """Run a command as `python -m morocco` does."""
    started = time.process_time()
    code, shown, fault = None, ["", ""], None
    with _captured(words) as streams:
        try:
            with _limit(TIMEOUT):
                code = run()
        except Exception:
            fault = traceback.format_exc()
        for number, stream in enumerate(streams):
            stream.flush()
            shown[number] = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    seconds = time.process_time() - started
    return Outcome(words, code, seconds, fault or _find_fault(words, code, *shown))


def _find_fault(words: Sequence[str], code: int | None, stdout: str, stderr: str) -> str | None:
    for text in (stdout, stderr):
        if not all(letter.isprintable() or letter == "\n" for letter in text):
            return f"not printable: {text!r}"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}: {stderr}"
    if code in (2, 3) and "rror: " not in stderr:
        return f"no error: {stderr!r}"
    if "json" in words and stdout:
        json.loads(stdout)
    return None


@contextmanager
def _captured(words: Sequence[str]) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    kept = sys.argv, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["morocco", *words], out, err
    try:
        yield out, err
    finally:
        sys.argv, sys.stdout, sys.stderr = kept


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"broken off after {seconds} s")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
