"""The container's work: records on stdin, predictions on stdout.

A second process reads and tokenises, so that this neither waits for PyTorch to be imported nor
takes time from the thread that keeps the GPU busy.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from batches import Window, make_windows
from models import weight_files
from records import ExampleError, read_lines
from tasks import find_task
from tokens import Tokens


class Feeder:
    """The process that reads and tokenises, seen from the one that predicts."""

    def __init__(self, out_dir: Path, task: str, batch_size: int) -> None:
        command = [sys.executable, __file__, str(out_dir), task, str(batch_size)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def windows(self) -> Iterator[Window]:
        """Yield the windows of the input; FeederError if the process ends too early."""
        assert self._process.stdout
        try:
            while window := pickle.load(self._process.stdout):
                yield window
        except (EOFError, pickle.UnpicklingError) as error:
            raise FeederError(self._process.wait()) from error


class FeederError(Exception):
    """The reading process ended early; it printed the reason, unless it was killed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the process that reads the input was killed by signal {-code}")
        self.code = code


def feed(out_dir: Path, task_name: str, batch_size: int) -> None:
    """Read all of stdin; write windows, then None."""
    task = find_task(task_name)
    tokens = Tokens.load(out_dir)
    examples = read_lines(sys.stdin.buffer, "stdin", task.read)
    for window in make_windows(examples, tokens, batch_size):
        pickle.dump(window, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
    pickle.dump(None, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def serve(out_dir: Path, task_name: str, batch_size: int, device: str, dtype: str) -> None:
    """Answer every record in input order; report their number on stderr."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # everything needed is in out_dir
    task = find_task(task_name)
    settings = Tokens.load(out_dir).settings
    weight_files(out_dir, task)  # fails at once if they are missing
    with Feeder(out_dir, task_name, batch_size) as feeder:
        # Imported while the feeder works already: PyTorch takes seconds.
        from network import load
        from predictor import Predictor, choose_device, choose_dtype

        place = choose_device(device)
        precision = choose_dtype(dtype, place)
        predictor = Predictor(load(out_dir, task, settings, precision).to(place), task, place)
        count = 0
        try:
            for predictions in predictor.predict(feeder.windows()):
                lines = (json.dumps(one, ensure_ascii=False) for one in predictions)
                sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
                sys.stdout.buffer.flush()
                count += len(predictions)
        except FeederError as error:
            if error.code > 0:
                sys.exit(error.code)
            raise ExampleError(str(error)) from error
    where = f"{place} in {str(precision).removeprefix('torch.')}"
    sys.stderr.write(f"main.py: {task_name}: {count} predictions, on {where}\n")


if __name__ == "__main__":
    try:
        feed(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    except ExampleError as error:
        sys.exit(f"main.py: {error}")
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)  # the process that predicts has ended, and printed the reason
