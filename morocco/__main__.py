"""The one place that turns an error into a message on stderr and an exit code."""

from __future__ import annotations

import errno
import sys
from io import StringIO

import click

from morocco.cli import cli
from morocco.errors import MoroccoError, OutputError
from morocco.util.params import print_text
from morocco.util.text import indent_lines


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run())


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        return int(cli.main(prog_name="morocco", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show(shown := StringIO())
        print_text(shown.getvalue(), err=True, nl=False)
        return error.exit_code
    except click.Abort:
        return 130
    except MoroccoError as error:
        print_text(f"morocco: error: {indent_lines(str(error))}", err=True)
        return error.exit_code
    except OSError as error:  # while printing; click handles a reader that went away
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        print_text(f"morocco: error: Cannot write the output: {error.strerror}.", err=True)
        return OutputError.exit_code


if __name__ == "__main__":
    main()
