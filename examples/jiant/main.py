"""Six baseline models of Russian SuperGLUE: train, serve and pack them in images."""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from models import MODELS
from records import ExampleError
from tasks import TASKS, find_task

_DTYPES = ("auto", "float32", "float16", "bfloat16")


def main() -> None:
    args = _parser().parse_args()
    try:
        args.run(args)
    except ExampleError as error:
        sys.exit(f"main.py: {error}")
    except ModuleNotFoundError as error:
        install = "pip install -r requirements.txt ../.. (in examples/jiant; ../.. is morocco)"
        sys.exit(f"main.py: {error.name} is not installed; {install}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)  # the reader of the predictions has closed the pipe
    except OSError as error:
        sys.exit(f"main.py: {error.filename or ''}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _train(args: argparse.Namespace) -> None:
    task = find_task(args.task)
    from training import Plan, train

    plan = Plan(args.model, args.seed, args.learning_rate, args.steps, args.device, args.force)
    train(plan, task, args.out_dir, args.data_dir)


def _infer(args: argparse.Namespace) -> None:
    from serving import serve

    serve(args.out_dir, args.task, args.batch_size, args.device, args.dtype)


def _eval(args: argparse.Namespace) -> None:
    """Become `morocco score`: its output and exit code are the answer."""
    if find_spec("morocco") is None:
        raise ModuleNotFoundError(name="morocco")
    command = [sys.executable, "-m", "morocco", "score", args.task, args.predictions, args.gold]
    os.execv(command[0], command)


def _docker_build(args: argparse.Namespace) -> None:
    from image import Build, build

    choice = Build(args.image, args.base, args.cpu, args.torch_index)
    build(choice, args.out_dir, find_task(args.task))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="fine-tune a pretrained model on a task"))
    _add_infer(commands.add_parser("infer", help="records on stdin, predictions on stdout"))
    _add_eval(commands.add_parser("eval", help="score predictions, with morocco"))
    _add_build(commands.add_parser("docker-build", help="pack a trained task in an image"))
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=f"{', '.join(MODELS)}, or a folder that holds a model")
    _add_task(parser)
    parser.add_argument("out_dir", type=Path, help="of this model, with a folder per task")
    parser.add_argument("data_dir", type=Path, help="the folder with DaNetQA, RCB, …")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--steps", type=_positive, help="instead of the number for the task")
    parser.add_argument("--learning-rate", type=_rate, default=1e-5, help="default: 1e-5")
    parser.add_argument("--force", action="store_true", help="replace existing weights")
    _add_device(parser)
    parser.set_defaults(run=_train)


def _add_infer(parser: argparse.ArgumentParser) -> None:
    # In a container both are set, so `docker run IMAGE --batch-size 32` is enough.
    known = os.environ.get("OUT_DIR"), os.environ.get("TASK")
    parser.add_argument(
        "out_dir", type=Path, nargs="?" if known[0] else None, default=known[0], help="of train"
    )
    _add_task(parser, known[1])
    parser.add_argument(
        "--batch-size", type=_positive, default=128, help="passes at a time; default: 128"
    )
    parser.add_argument(
        "--dtype",
        choices=_DTYPES,
        default="auto",
        help="default: float16 on GPUs that gain from it",
    )
    _add_device(parser)
    parser.set_defaults(run=_infer)


def _add_eval(parser: argparse.ArgumentParser) -> None:
    _add_task(parser)
    parser.add_argument("predictions", help="what infer printed")
    parser.add_argument("gold", help="a file with the labels, or the data folder")
    parser.set_defaults(run=_eval)


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out_dir", type=Path, help="of train")
    _add_task(parser)
    parser.add_argument("image", help="its name, as in rubert-parus")
    parser.add_argument("--base", help="an image with PyTorch; default: see the Dockerfile")
    parser.add_argument("--cpu", action="store_true", help="without CUDA, on a plain Python image")
    parser.add_argument(
        "--torch-index",
        default=os.environ.get("TORCH_INDEX"),
        metavar="URL",
        help="where --cpu finds PyTorch's CPU builds; default: $TORCH_INDEX, then what pip knows",
    )
    parser.set_defaults(run=_docker_build)


def _add_task(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    nargs = "?" if default else None
    parser.add_argument("task", nargs=nargs, default=default, help=", ".join(TASKS))


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1; default: auto")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate < 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return rate


if __name__ == "__main__":
    main()
