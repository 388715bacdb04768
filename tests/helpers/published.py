"""The published logs, and what the first MOROCCO tool prints for them."""

from __future__ import annotations

import json

import pytest

from paths import PUBLISHED

__all__ = ["PUBLISHED", "load_expected", "needs_published"]

needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(),
    reason=f"THE PUBLISHED LOGS ARE NOT HERE ({PUBLISHED}): the estimates go unchecked against "
    "those of the first MOROCCO tool",
)


def load_expected() -> list[dict[str, float]]:
    text = (PUBLISHED / "expected_stats.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]
