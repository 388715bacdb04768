"""Paths of the repository, its made-up data and the published logs."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DATA = EXAMPLES / "data"
PUBLISHED = ROOT.parent / "shared" / "published-logs"
"""261 real logs; where they are absent, the tests that read them are skipped."""
