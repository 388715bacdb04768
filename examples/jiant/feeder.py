"""The process that reads: records on stdin, windows for the model on stdout.

It is a process of its own so that tokenising neither waits for PyTorch to be imported nor takes
time from the thread that keeps the GPU busy.
"""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from errors import ExampleError
from lines import read_lines
from tasks import find_task
from tokens import Tokens
from windows import Window, make_windows


class Feeder:
    """The reading process, seen from the one that predicts."""

    def __init__(self, out_dir: Path, task: str, batch_size: int) -> None:
        command = [sys.executable, __file__, str(out_dir), task, str(batch_size)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def windows(self) -> Iterator[Window]:
        """Yield what the process makes of its input; FeederError when it ends before its input."""
        assert self._process.stdout
        try:
            while window := pickle.load(self._process.stdout):
                yield window
        except (EOFError, pickle.UnpicklingError) as error:
            raise FeederError(self._process.wait()) from error


class FeederError(Exception):
    """The reading process ended early; it has said why, unless it was killed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the process that reads the input was ended by signal {-code}")
        self.code = code


def feed(out_dir: Path, task_name: str, batch_size: int) -> None:
    """Read all of stdin; write windows, and None when there are no more."""
    task = find_task(task_name)
    tokens = Tokens.load(out_dir)
    examples = read_lines(sys.stdin.buffer, "stdin", task.read)
    for window in make_windows(examples, tokens, batch_size):
        pickle.dump(window, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
    pickle.dump(None, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        feed(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    except ExampleError as error:
        sys.exit(f"main.py: {error}")
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)  # the process that predicts is gone, and has said why
