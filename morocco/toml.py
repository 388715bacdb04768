"""Read a TOML file that a user wrote; whatever is wrong with it is one DataError."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from morocco.errors import DataError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_SIZE = 1024 * 1024


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; DataError names the file, and the line that is wrong."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SIZE + 1)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None
    if len(content) > _MAX_SIZE:
        raise DataError(f"{path} is larger than 1 MB, so no file of settings.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8, so no TOML.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path} is no TOML: {error}.") from None
