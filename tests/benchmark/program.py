"""Runs the program as its users do."""

from __future__ import annotations

import subprocess
import sys


def morocco(*args: str) -> str:
    """Return what `morocco` prints on stdout."""
    command = [sys.executable, "-m", "morocco", *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
