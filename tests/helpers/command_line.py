"""Runs commands that need no engine; lists what they import and complete."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from forked import run_forked

MODULE = (sys.executable, "-m", "morocco")
SCRIPT = (str(Path(sysconfig.get_path("scripts")) / "morocco"),)
HEAVY = {"docker", "matplotlib", "numpy", "pandas", "psutil", "pynvml", "requests", "rich"}

Done = subprocess.CompletedProcess[str]


def run(
    *args: str | Path,
    program: tuple[str, ...] | None = None,
    stdout: int = subprocess.PIPE,
    **env: str,
) -> Done:
    """Run morocco, or another program, to its end."""
    env = without_settings() | env
    if program is None and stdout == subprocess.PIPE:
        return run_forked("morocco", *args, env=env, timeout=100)
    return subprocess.run(
        [*(program or MODULE), *args],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=100,
        env=env,
    )


def without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "MOROCCO" not in name}


def complete(typed: str, word: int) -> list[str]:
    done = run(
        program=SCRIPT, _MOROCCO_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(word)
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def imported_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint('MODULES', *sys.modules)"
    done = run("-c", program, program=(sys.executable,))
    return set(done.stdout.rpartition("MODULES")[2].split())
