"""Measure language models in containers: speed, start-up time, CPU, RAM and GPU memory.

In notebooks and scripts: `read_logs`, `read_records`, `estimate`, `to_dataframe`, `plot_runs`,
`score_predictions`, `score_folders`, `check_submission`, `measure`; see `morocco.api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morocco.api import (
        check_submission,
        estimate,
        measure,
        plot_runs,
        read_logs,
        read_records,
        score_folders,
        score_predictions,
        to_dataframe,
    )

__version__ = "1.1.0"

__all__ = [
    "check_submission",
    "estimate",
    "measure",
    "plot_runs",
    "read_logs",
    "read_records",
    "score_folders",
    "score_predictions",
    "to_dataframe",
]


def __getattr__(name: str) -> object:
    """Load the interface on first use, so that the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("morocco.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
