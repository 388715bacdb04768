"""The program itself, run as its users run it."""

from __future__ import annotations

import subprocess
import sys


def morocco(*args: str) -> str:
    """Return what `morocco` prints; its warnings and errors go to stderr as they are."""
    command = [sys.executable, "-m", "morocco", *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
