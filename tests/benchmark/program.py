"""Runs the program as its users do."""

from __future__ import annotations

import os
import subprocess
import sys


def morocco(*args: str, **env: str) -> str:
    """Return what `morocco` prints on stdout; `env` is added to the environment."""
    command = [sys.executable, "-m", "morocco", *args]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    )
    return done.stdout
