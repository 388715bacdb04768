"""What a record tells after packing: enough for every rule, and nothing private."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.logs.redact import Redactor

UUID, OTHER = (f"GPU-{digit * 8}-1111-2222-3333-444444444444" for digit in "ab")
EXEC = "exec:env HF_TOKEN=abc1 /home/me/venv/bin/python /home/me/infer.py parus --api-key s3 -v"
RECORD = {
    "target": {
        "target": EXEC,
        "command": [
            *("env", "HF_TOKEN=abc1", "/home/me/venv/bin/python", "/home/me/infer.py", "parus"),
            *("--api-key", "s3", "-v", "--batch-size", "32"),
        ],
    },
    "arguments": {"gpus": UUID, "env": ["HF_TOKEN"]},
    "task": "parus",
    "data": {"path": "/home/me/data/PARus/val.jsonl", "sha256": "1f"},
    "host": {"cpu": "Broadwell", "name": "me-at-home"},
    "gpus": [{"uuid": UUID, "name": "V100"}, {"uuid": OTHER, "name": "V100"}],
    "gpus_before": {"processes": [{"gpu": 0, "pid": 7, "name": "salary-model"}]},
    "gpu_users": [{"gpu": 0, "pid": 8, "name": None}, {"gpu": 0, "pid": 9, "name": "chess"}],
    "load": {"other_runs": ["rcb of exec:/home/me/x"], "cores": 8},
    "warnings": [
        "GPU 0 is in use by others: salary-model (pid 7). The measurement may come out too slow.",
        "Another morocco run is at work on this machine: rcb of exec:/home/me/x. They slow each "
        "other down; measure one after the other.",
    ],
    "run_time": 1.5,
}


def redact(*records: Any) -> list[Any]:
    packed = [json.dumps(record).encode() for record in records]
    redactor = Redactor(packed)
    return [json.loads(redactor.redact(record)) for record in packed]


def hide(text: str) -> str:
    (record,) = redact({"target": {"target": text}})
    return str(record["target"]["target"])


def test_nothing_private_is_left() -> None:
    (record,) = redact(RECORD)
    text = json.dumps(record)
    for private in ("/home/me", "abc1", "s3", "me-at-home", "salary", "chess", UUID, OTHER):
        assert private not in text


def test_what_rules_and_readers_need_is_left() -> None:
    (record,) = redact(RECORD)
    assert record["data"] == {"path": "val.jsonl", "sha256": "1f"}
    assert record["target"]["target"] == (
        "exec:env HF_TOKEN=<secret-1> <folder-2>/python <folder-3>/infer.py parus "
        "--api-key <secret-2> -v"
    )
    assert record["target"]["command"] == [
        *("env", "HF_TOKEN=<secret-1>", "<folder-2>/python", "<folder-3>/infer.py", "parus"),
        *("--api-key", "<secret-2>", "-v", "--batch-size", "32"),
    ]
    assert record["arguments"]["env"] == ["HF_TOKEN"]
    assert record["host"]["cpu"] == "Broadwell"
    assert record["gpus"][0]["name"] == "V100"
    assert record["arguments"]["gpus"] == record["gpus"][0]["uuid"] != record["gpus"][1]["uuid"]
    assert [user["name"] for user in record["gpu_users"]] == [None, "process 2"]
    assert "in use by others: process 1 (pid 7)." in record["warnings"][0]
    assert f"machine: {record['load']['other_runs'][0]}. They" in record["warnings"][1]
    assert (record["task"], record["run_time"]) == ("parus", 1.5)


def test_what_was_equal_stays_equal_and_what_differed_differs() -> None:
    names = ["one", "two", "one"]
    records = redact(*({"host": {"name": name}, "gpus": [{"uuid": name}]} for name in names))
    for values in (
        [record["host"]["name"] for record in records],
        [record["gpus"][0]["uuid"] for record in records],
    ):
        assert values[0] == values[2] != values[1]


def test_another_submission_has_other_hashes() -> None:
    first, second = (redact({"host": {"name": "one"}, "task": task}) for task in ("parus", "rcb"))
    assert first[0]["host"] != second[0]["host"]


def test_what_was_hidden_is_counted() -> None:
    content = json.dumps(RECORD).encode()
    redactor = Redactor([content])
    redactor.redact(content)
    assert redactor.hidden == {
        "host names": 1,
        "folders": 3,
        "names of other processes": 3,
        "UUIDs of GPUs": 2,
        "secrets": 2,
    }


def test_a_record_is_hidden_once() -> None:
    once = redact(RECORD)
    assert redact(*once) == once


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("exec:python a.py --token X", "exec:python a.py --token <secret-1>"),
        ("exec:python a.py --hf-token='X Y'", "exec:python a.py --hf-token=<secret-1>"),
        ("exec:env KEY=X python", "exec:env KEY=<secret-1> python"),
        ("exec:env DB_PASSWORD=X python", "exec:env DB_PASSWORD=<secret-1> python"),
        ("exec:curl https://me:X@host/a", "exec:curl https://<secret-1>@host/a"),
        ("exec:x hf_abcdefghijklmnop", "exec:x <secret-1>"),
        ("exec:python --data=/home/me/a.json", "exec:python --data=<folder-1>/a.json"),
        ("exec:sh -c 'cat /home/me/a'", "exec:sh -c 'cat <folder-1>/a'"),
        ("exec:python a/b.py --max-tokens 5", None),
        ("exec:python --tokenizer bert OMP_NUM_THREADS=4", None),
        ("exec:curl https://host/path/a", None),
        ("registry.example.org:5000/me/rubert-parus:1.0", None),
    ],
)
def test_secrets_and_folders_are_found_in_a_target(text: str, left: str | None) -> None:
    assert hide(text) == (text if left is None else left)


def test_what_is_no_record_stays_as_it_is() -> None:
    for content in (b"", b"{", b"[1]", b'{"task":"parus"}', b'{"host": 5, "gpus": {"uuid": 1}}'):
        assert Redactor([content]).redact(content) == content


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from([*RECORD, "failure", "stderr"]), _JSON))
def test_any_json_is_redacted(record: dict[str, Any]) -> None:
    (left,) = redact(record)
    assert left.keys() == record.keys()
