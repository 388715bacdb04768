"""Kills suites at random moments, in every usual way, and counts what that harmed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from runs import processes_with

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PATIENCE = 60
"""Seconds after which a suite counts as hanging."""
_PAUSE = 0.05
"""Seconds between two signals of a burst, at most."""
_MARK = "MOROCCO_TESTS_KILLS"
_KEPT = re.compile(r"\d+_\d+_\d+\.jsonl?|\.morocco-suite|profile\.toml")
"""The files that a suite leaves in the folder of its logs."""


@dataclass(frozen=True)
class Victim:
    """A suite that is started again and again until it is done."""

    command: Sequence[str]
    """Without --logs, which differ each time that a suite is done."""
    plan: int
    """Number of its runs."""
    longest: float
    """Seconds until it is killed, at most."""


def kill_suites(victim: Victim, folder: Path, kills: int, random: Random) -> Counter[str]:
    """Kill suites that often, each until it is done; return what was harmed, 0 of all if nothing.

    `changed` and `lost` count logs and records that were finished before a kill. `processes` and
    `files` are those that are left when a suite is done; `hung` counts suites that outlived their
    signals by a minute, `failed` those that did not end well without a kill,
    `invalid` those whose logs `check` refuses: their runs must last longer than their start-up.
    """
    harm = Counter[str]()
    while harm["kills"] < kills:
        own = folder / uuid.uuid4().hex
        (own / "temporary").mkdir(parents=True)
        harm += _kill_until_done(victim, own, kills - harm["kills"], random)
    return harm


def _kill_until_done(victim: Victim, folder: Path, most: int, random: Random) -> Counter[str]:
    harm = Counter[str](kills=0)
    logs, mark = folder / "logs", uuid.uuid4().hex
    env = {**os.environ, _MARK: mark, "TMPDIR": str(folder / "temporary")}
    command = [*victim.command, "--logs", str(logs)]
    finished: dict[Path, bytes] = {}
    while harm["kills"] < most:
        with (folder / "messages").open("ab") as messages:
            suite = _start(command, env, messages.fileno())
            try:
                harm["failed"] += suite.wait(random.uniform(0, victim.longest)) != 0
                break
            except subprocess.TimeoutExpired:
                harm["hung"] += _strike(suite, random)
        harm["kills"] += 1
        harm += _compare(finished)
        finished |= _read_finished(logs)
    with (folder / "messages").open("ab") as messages:
        harm["failed"] += _start(command, env, messages.fileno()).wait(_PATIENCE) != 0
    harm += _compare(finished)
    profile = str(logs / "profile.toml")
    check = [sys.executable, "-m", "morocco", "check", str(logs), "--profile", profile]
    harm["invalid"] += subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode != 0
    harm["lost"] += victim.plan - sum(path.suffix == ".jsonl" for path in _read_finished(logs))
    harm["processes"] += len(processes_with(f"{_MARK}={mark}"))
    strange = [path for path in logs.rglob("*") if path.is_file() and not _KEPT.match(path.name)]
    harm["files"] += len([*strange, *(folder / "temporary").iterdir()])
    return harm


def _start(
    command: Sequence[str], env: Mapping[str, str], messages: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=messages,
        stderr=messages,
        start_new_session=True,
    )


def _strike(suite: subprocess.Popen[bytes], random: Random) -> bool:
    """Send a signal, or a burst of them, to a suite or to its process group; tell if it hangs."""
    send = random.choice((os.kill, os.killpg))
    with suppress(ProcessLookupError):
        for _ in range(random.choice((1, 1, 2, 3, 5))):
            send(suite.pid, random.choice(SIGNALS))
            time.sleep(random.uniform(0, _PAUSE))
    try:
        suite.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        suite.kill()
        suite.wait()
        return True
    return False


def _read_finished(logs: Path) -> dict[Path, bytes]:
    """Return the content of every log that has its record, and of these records."""
    pairs = [(log, log.with_suffix(".json")) for log in logs.glob("*/*.jsonl")]
    return {path: path.read_bytes() for pair in pairs if pair[1].exists() for path in pair}


def _compare(finished: Mapping[Path, bytes]) -> Counter[str]:
    """Return how many of these files were changed, and how many lost."""
    there = {path: path.read_bytes() for path in finished if path.exists()}
    changed = sum(there[path] != finished[path] for path in there)
    return Counter(changed=changed, lost=len(finished) - len(there))
