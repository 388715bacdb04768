"""From the command line of `suite` and its file to what is to be done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from morocco.config import SIZES, Asked, Config, choose_models
from morocco.errors import DataError
from morocco.options import RunOptions
from morocco.plan import Sizes, make_targets
from morocco.suite_command import SuiteOptions


def put_together(
    options: Mapping[str, Any], said: Collection[str], run: RunOptions
) -> SuiteOptions:
    """Return the options with the models chosen; `said` are those that no file stands behind.

    DataError for names that are not there and for options that exclude each other.
    """
    config = options["config"] or Config()
    if config.models and "target" in config.options:
        raise DataError("The --config file has both a target and models; leave out one of them.")
    asked = Asked(
        target=options["target"],
        models=options["models"] or (),
        tasks=(options["tasks"] or ()) if "tasks" in said else (),
        sizes={name: options[name] for name in SIZES if name in said},
    )
    defaults = Sizes(*(options[name] for name in SIZES))
    if asked.target is None and not config.models:
        raise DataError(
            "There is nothing to measure: name a TARGET, or models in the --config file."
        )
    models = choose_models(asked, config, options["tasks"] or (), defaults)
    make_targets(models)
    if options["cluster"] is not None and options["parallel"]:
        raise DataError(
            "--parallel shares out this machine, --cluster uses others; a machine of several GPUs "
            "takes part with one worker for each."
        )
    return SuiteOptions(
        models=models,
        run=run,
        **{
            name: options[name]
            for name in ("data_dir", "logs", "retries", "force", "parallel", "cluster", "quiet")
        },
    )
