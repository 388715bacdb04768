"""What a packed record leaves out: where and beside whom it was measured, and what may be secret.

What was equal stays equal within a submission, so that all rules come to the same verdicts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from morocco.util.json import parse_object

Table = dict[str, Any]

HOST, FOLDER, PROCESS = "host names", "folders", "names of other processes"
GPU, SECRET = "UUIDs of GPUs", "secrets"
TOLD = "CPU, RAM, kernel, engine, image, GPUs with drivers, sizes, times, names of variables"
"""What every record still tells."""

_HASHED = re.compile(r"(?:GPU|MIG|host)-[0-9a-f]{8}")
_NUMBERED = re.compile(r"process \d+|<secret-\d+>")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}[/\d]*")
_PATH = re.compile(r"(?<![^\s=:,;'\"(\[])(/(?!/)(?:[^\s/=:,;'\"()\[\]]+/)+)(?=[^\s/])")
_WORD = r"(?:token|secret|password|passwd|passphrase|pwd|key|apikey|credentials?|auth)"
_NAME = rf"(?:[\w-]*[_-])?{_WORD}"
_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s\"']+)"
_SECRETS = (
    re.compile(rf"(?<![\w-])(--?{_NAME}(?:=|\s+)|{_NAME}=){_VALUE}", re.IGNORECASE),
    re.compile(r"(\w+://)([^\s/:@]*:[^\s/@]+)(?=@)"),
    re.compile(r"(?<!\w)()((?:hf_|gh[a-z]_|glpat-|sk-|xox[a-z]-|AKIA)[\w-]{10,})"),
)
_FLAG = re.compile(rf"--?{_NAME}", re.IGNORECASE)


class Redactor:
    """Redacts the records of one submission, one after the other."""

    def __init__(self, records: Iterable[bytes]) -> None:
        """`records` are all of the submission: only who has them can test a guess."""
        self._salt = hashlib.sha256(b"\n".join(records)).digest()
        self._numbers: dict[str, dict[str, int]] = {}

    @property
    def hidden(self) -> dict[str, int]:
        """How many different things of each kind were hidden so far."""
        kinds = (HOST, FOLDER, PROCESS, GPU, SECRET)
        return {kind: len(self._numbers[kind]) for kind in kinds if kind in self._numbers}

    def redact(self, content: bytes) -> bytes:
        """Return a record without what it need not tell; what is no record stays as it is."""
        try:
            record = parse_object(content)
        except ValueError:
            return content
        before = json.dumps(record)
        self._redact(record)
        if json.dumps(record) == before:
            return content
        indent = 2 if b"\n" in content.strip() else None
        text = json.dumps(record, indent=indent, ensure_ascii=False) + "\n"
        return text.encode(errors="backslashreplace")

    def _redact(self, record: Table) -> None:
        _change(record, "host", "name", lambda name: self._hash(HOST, "host", name))
        _change(record, "data", "path", self._cut)
        for gpu in _list_tables(record.get("gpus")):
            _set(gpu, "uuid", self._hash_gpu)
        _change(record, "arguments", "gpus", self._hide)
        self._redact_target(record)
        names = self._redact_processes(record)
        for key in ("warnings", "stderr"):
            _set(record, key, lambda text: self._hide(_replace_names(text, names)))
        _change(record, "failure", "message", self._hide)

    def _redact_target(self, record: Table) -> None:
        _change(record, "target", "target", self._hide)
        target = record.get("target")
        command = target.get("command") if isinstance(target, dict) else None
        if isinstance(command, list):
            words = [word if isinstance(word, str) else "" for word in command]
            flags = [False, *(_FLAG.fullmatch(word) is not None for word in words)]
            for index, word in enumerate(words):
                if word:
                    command[index] = self._name(SECRET, word) if flags[index] else self._hide(word)

    def _redact_processes(self, record: Table) -> dict[str, str]:
        """Number the names of other processes and of other runs; return the new ones by the old."""
        before = record.get("gpus_before")
        listed = before.get("processes") if isinstance(before, dict) else None
        names: dict[str, str] = {}

        def number(name: str) -> str:
            names[name] = self._name(PROCESS, name)
            return names[name]

        for process in (*_list_tables(listed), *_list_tables(record.get("gpu_users"))):
            _set(process, "name", number)
        _change(record, "load", "other_runs", number)
        return names

    def _hide(self, text: str) -> str:
        """Return a text without secrets, UUIDs of GPUs and folders."""
        for secret in _SECRETS:
            text = secret.sub(self._hide_secret, text)
        text = _UUID.sub(lambda found: self._hash_gpu(found[0]), text)
        return _PATH.sub(lambda found: self._name(FOLDER, found[1]) + "/", text)

    def _hide_secret(self, found: re.Match[str]) -> str:
        return str(found[1]) + self._name(SECRET, found[2].strip("'\""))

    def _cut(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        self._count(FOLDER, str(PurePosixPath(path).parent) + "/")
        return PurePosixPath(path).name

    def _name(self, kind: str, value: str) -> str:
        if _NUMBERED.fullmatch(value):
            return value
        number = self._count(kind, value)
        return f"process {number}" if kind == PROCESS else f"<{kind.removesuffix('s')}-{number}>"

    def _count(self, kind: str, value: str) -> int:
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(value, len(numbers) + 1)

    def _hash_gpu(self, uuid: str) -> str:
        return self._hash(GPU, "MIG" if uuid.startswith("MIG") else "GPU", uuid)

    def _hash(self, kind: str, prefix: str, value: str) -> str:
        if not value or _HASHED.fullmatch(value):
            return value
        self._count(kind, value)
        return f"{prefix}-{hashlib.sha256(self._salt + value.encode()).hexdigest()[:8]}"


def _list_tables(value: Any) -> Iterator[Table]:
    yield from (
        item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict)
    )


def _change(record: Table, key: str, name: str, change: Callable[[str], str]) -> None:
    """Change a text, or a list of texts, in a table of a record, if it is there."""
    table = record.get(key)
    if isinstance(table, dict):
        _set(table, name, change)


def _set(table: Table, name: str, change: Callable[[str], str]) -> None:
    value = table.get(name)
    if isinstance(value, str):
        table[name] = change(value)
    elif isinstance(value, list):
        table[name] = [change(item) if isinstance(item, str) else item for item in value]


def _replace_names(text: str, names: dict[str, str]) -> str:
    """Return a warning with the new names of processes, where it says them: after a colon."""
    for old, new in names.items():
        text = text.replace(f": {old} (pid ", f": {new} (pid ").replace(f": {old}. ", f": {new}. ")
    return text
