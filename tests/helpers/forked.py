"""Runs programs that import much, each in a process forked from one that has imported it already.

Such a program starts in a moment instead of seconds. It is a process of its own, with its own
arguments, standard streams and exit code.
"""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

import morocco

Completed = subprocess.CompletedProcess[str]

_CONTEXT = get_context("forkserver")
_preloaded = [
    "pytest",  # the main module of the tests, which a forked process imports as well
    "jinja2",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    *(
        module.name
        for module in walk_packages(morocco.__path__, "morocco.")
        if not re.search("__main__|dask", module.name)
    ),
]


os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by PyTorch when it is imported
_CONTEXT.set_forkserver_preload(_preloaded)


def preload(*modules: str) -> None:
    """Name more modules to import once; call this before the first program runs."""
    _preloaded.extend(modules)
    _CONTEXT.set_forkserver_preload(_preloaded)


def run_forked(
    program: Path | str,
    *arguments: object,
    records: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> Completed:
    """Run a program of Python, or the module of that name, with `records` as its input.

    `env` is its whole environment; by default it has that of the tests.
    """
    words = [str(program), *map(str, arguments)]
    with TemporaryDirectory(prefix="forked-") as name:
        streams = [Path(name, stream) for stream in ("stdin", "stdout", "stderr")]
        for stream in streams:
            stream.write_text(records if stream.name == "stdin" else "", encoding="utf-8")
        process = Forked(words, streams, {**os.environ, **(env or {})})
        code = process.wait(timeout)
        stdout, stderr = (stream.read_bytes().decode() for stream in streams[1:])
    return Completed(words, code, stdout, stderr)


class Forked:
    """A running program, with what the tests use of `subprocess.Popen`."""

    def __init__(
        self, words: Sequence[str], streams: Sequence[Path], env: Mapping[str, str]
    ) -> None:
        """`streams` are the files of stdin, stdout and stderr; `env` is the whole environment."""
        self.args = list(words)
        self._process = _CONTEXT.Process(target=_run, args=(self.args, list(streams), dict(env)))
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit code, None while the program runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; after `timeout` seconds, kill the program and raise TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def _run(words: Sequence[str], streams: Sequence[Path], env: Mapping[str, str]) -> None:
    """Become the program; this is what the forked process does."""
    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(words)
    if Path(words[0]).suffix == ".py":
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
    else:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
