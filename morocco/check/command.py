"""The commands `check` and `pack`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from morocco.util.params import PATH, print_text, warn
from morocco.util.units import plural

if TYPE_CHECKING:
    from morocco.check.render import Format
    from morocco.check.rule import CheckResult


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option(
    "--profile",
    type=PATH,
    metavar="FILE.toml",
    help="Check against this suite instead of Russian SuperGLUE.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...], profile: Path | None, form: Format) -> None:
    """Check whether logs make a valid submission: VALID, or INVALID and exit code 1.

    PATH is a folder of logs, a .zip or a log.

    \b
    morocco check logs.zip
    """
    from morocco.check.render import render

    checked = _judge(paths, profile)
    print_text(render(checked, form), nl=False)
    ctx.exit(0 if checked.valid else 1)


def _judge(paths: tuple[Path, ...], profile: Path | None) -> CheckResult:
    from morocco.check.check import check as judge
    from morocco.check.profile import RUSSIAN_SUPERGLUE, read_profile
    from morocco.logs.submission import load_submission

    suite = read_profile(profile) if profile else RUSSIAN_SUPERGLUE
    return judge(load_submission(paths), suite)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option(
    "-o", "--output", type=PATH, required=True, help="The zip to write.", metavar="LOGS.zip"
)
@click.option("--no-check", is_flag=True, help="Pack even if check says INVALID.")
@click.option("--force", is_flag=True, help="Replace an existing zip.")
@click.option("--profile", type=PATH, metavar="FILE.toml", help="As for check.")
def pack(
    paths: tuple[Path, ...], output: Path, no_check: bool, force: bool, profile: Path | None
) -> None:
    """Check logs, then pack them and their records, and nothing else, into a zip to submit.

    PATH is a folder of logs, or a log. The same logs always give the same zip, byte for byte.

    \b
    morocco pack logs -o logs.zip
    """
    from morocco.logs.pack import check_output, pack_logs
    from morocco.logs.redact import TOLD
    from morocco.util.files import is_special

    check_output(output, replace=force)
    if not no_check:
        _require_valid(paths, profile)
    packed = pack_logs(paths, output)
    warn(*packed.remarks)
    if packed.hidden:
        counts = ", ".join(f"{kind} ({count})" for kind, count in packed.hidden.items())
        print_text(f"Hidden in the records of the zip: {counts}.", err=True)
        print_text(f"They still tell: {TOLD}.", err=True)
    print_text(f"{plural(packed.logs, 'log')}, {plural(packed.records, 'record')}", err=True)
    if not is_special(output):  # which may be stdout
        print_text(output)


def _require_valid(paths: tuple[Path, ...], profile: Path | None) -> None:
    from morocco.check.render import render_text
    from morocco.errors import InvalidSubmission

    checked = _judge(paths, profile)
    print_text(render_text(checked, brief=True), err=True, nl=False)
    if not checked.valid:
        raise InvalidSubmission(
            "Nothing was packed. Fix what says NO above, or pack as is with --no-check."
        )
