"""A target of known speed, start-up and faults; standard library only, no part of morocco.

The n-th prediction comes n / rate seconds after the model is ready, whatever the machine does.
Arguments come from the variable METRONOME, set in the image, and from the command line.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rate", type=float, default=400, help="records a second")
    parser.add_argument("--start-up", type=float, default=0, help="seconds")
    parser.add_argument(
        "--read",
        choices=["late", "early", "stream", "never", "close", "some"],
        default="late",
        help="late: start up, then read all; early: read all, then start up; stream: predict as "
        "records come; never: leave stdin alone; close: close it unread; some: ten records only",
    )
    parser.add_argument(
        "--predict",
        choices=["each", "once", "distinct", "never"],
        default="each",
        help="distinct: one for each idx",
    )
    parser.add_argument("--say", default="", help="to stderr, before anything else")
    parser.add_argument("--exit-code", type=int, default=0)
    parser.add_argument("--after", type=int, help="end after this many predictions")
    parser.add_argument("--kill", type=int, help="end by this signal instead of by exit")
    parser.add_argument("--eat", type=int, default=0, help="MB of memory to take and hold")
    parser.add_argument("--hang", type=float, default=0, help="seconds to sleep before the end")
    parser.add_argument("--workers", type=int, default=0, help="child processes, each one core")
    parser.add_argument("--daemon", action="store_true", help="leave a child behind at the end")
    return parser.parse_args(shlex.split(os.environ.get("METRONOME", "")) + sys.argv[1:])


def main() -> None:
    args = parse_args()
    if args.say:
        sys.stderr.write(args.say + "\n")
    workers = [start_worker(args.eat) for _ in range(args.workers)]
    held = b"x" * (args.eat * 2**20) if not workers else None
    predict(*read_records(args), args)
    time.sleep(args.hang)
    for worker in workers:
        worker.kill()
    if args.daemon:
        subprocess.Popen(["sleep", "600"])
    if args.kill:
        os.kill(os.getpid(), args.kill)
        time.sleep(60)
    del held
    os._exit(args.exit_code)


def start_worker(megabytes: int) -> subprocess.Popen[bytes]:
    busy = f"x = b'x' * ({megabytes} * 2**20)\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.DEVNULL)


def read_records(args: argparse.Namespace) -> tuple[Iterable[bytes], float]:
    """Return the records and the time from which the beat is counted."""
    if args.read == "early":
        records = list(sys.stdin.buffer)
        time.sleep(args.start_up)
        return records, time.monotonic()
    time.sleep(args.start_up)
    ready = time.monotonic()
    if args.read == "never":
        return [], ready
    if args.read == "close":
        os.close(0)
        return [], ready
    lines = sys.stdin.buffer
    if args.read == "some":
        return list(itertools.islice(lines, 10)), ready
    return (lines if args.read == "stream" else list(lines)), ready


def predict(records: Iterable[bytes], ready: float, args: argparse.Namespace) -> None:
    seen: set[object] = set()
    for done, record in enumerate(records, start=1):
        wait_until(ready + done / args.rate)
        idx = json.loads(record).get("idx")
        wanted = {"each": True, "once": done == 1, "distinct": idx not in seen, "never": False}
        if wanted[args.predict]:
            seen.add(idx)
            sys.stdout.write(json.dumps({"idx": idx, "label": 0}) + "\n")
            if done % args.batch_size == 0:
                sys.stdout.flush()
        if done == args.after:
            break
    sys.stdout.flush()


def wait_until(moment: float) -> None:
    delay = moment - time.monotonic()
    if delay > 0:
        time.sleep(delay)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
