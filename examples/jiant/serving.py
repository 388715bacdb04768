"""The container's work: records on stdin, predictions on stdout."""

import json
import os
import sys
from pathlib import Path

from errors import ExampleError
from feeder import Feeder, FeederError
from files import weight_files
from tasks import find_task
from tokens import Tokens


def serve(out_dir: Path, task_name: str, batch_size: int, device: str, dtype: str) -> None:
    """Answer every record in the order of the input; tell on stderr how many there were."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # all that is needed lies in out_dir
    task = find_task(task_name)
    settings = Tokens.load(out_dir).settings
    weight_files(out_dir, task)  # said at once if they are missing
    with Feeder(out_dir, task_name, batch_size) as feeder:
        # Imported when the feeder is at work already: PyTorch takes seconds.
        from checkpoint import load
        from devices import choose_device, choose_dtype
        from predictor import Predictor

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
