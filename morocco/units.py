"""The units that stand in names and signatures."""

from __future__ import annotations

Seconds = float
Bytes = int

GIB = 2**30
"""What every table and axis calls a GB, as the leaderboard does."""


def format_bytes(count: Bytes) -> str:
    """Return `count` as people read it: `512 MB`, `2.39 GB` (powers of 1024)."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.2f} GB"


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
