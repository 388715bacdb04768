"""The table of contents: all commands by section, each loaded from its wing when needed."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click

from morocco import __version__


class _Entry(NamedTuple):
    module: str
    """The module that defines the click command of this name."""
    help: str
    """The line in `morocco --help`, which loads no command."""


SECTIONS: dict[str, dict[str, _Entry]] = {
    "Measure": {
        "doctor": _Entry("morocco.doctor.command", "Look whether this machine is fit to measure."),
        "bench": _Entry("morocco.bench.command", "Measure a target on one task and write its log."),
        "suite": _Entry("morocco.suite.command", "Measure a model on all tasks; resumes."),
    },
    "Look": {
        "stats": _Entry("morocco.stats.command", "Estimate init time, speed and GPU RAM."),
        "plot": _Entry("morocco.charts.command", "Draw CPU, RAM and GPU use over time."),
        "report": _Entry("morocco.report.command", "Compare models: tables, a chart, a page."),
        "score": _Entry("morocco.score.command", "Score predictions as the leaderboard does."),
    },
    "Submit": {
        "check": _Entry("morocco.check.command", "Check whether logs make a valid submission."),
        "pack": _Entry("morocco.check.command", "Check logs, then pack them into a zip."),
    },
}
"""In the order of `morocco --help`."""


class SectionedGroup(click.Group):
    """A group that imports a command only to run, complete or explain it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands, section by section."""
        return [name for entries in SECTIONS.values() for name in entries]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load and return a command; None if there is none of this name."""
        for entries in SECTIONS.values():
            if cmd_name in entries:
                command = getattr(import_module(entries[cmd_name].module), cmd_name)
                assert isinstance(command, click.Command)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, section by section."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


@click.group(
    cls=SectionedGroup,
    context_settings={
        "auto_envvar_prefix": "MOROCCO",
        "help_option_names": ["-h", "--help"],
        "show_default": True,
    },
)
@click.version_option(__version__, message="morocco %(version)s")
def cli() -> None:
    """Measure language models in containers: speed, start-up time, CPU, RAM and GPU memory.

    Every option can also be set by an environment variable, such as MOROCCO_BENCH_INPUT_SIZE for
    --input-size of `bench`.
    """
