"""The noise floor, from made-up moments and from this machine."""

from __future__ import annotations

import itertools
import random

import pytest

from morocco.doctor.noise import compute_spread, judge_noise


def moments(*pieces: float) -> list[float]:
    """Return when pieces of work that take this long were done."""
    return list(itertools.accumulate(pieces, initial=100.0))


def test_work_that_always_takes_the_same_has_no_spread() -> None:
    assert compute_spread([moments(*[0.001] * 5000)] * 2) == pytest.approx(0.0, abs=1e-9)


def test_what_lasts_for_seconds_counts_in_full() -> None:
    slow_then_fast = moments(*[0.0015] * 3000, *[0.0005] * 9000)
    spread = compute_spread([slow_then_fast])
    assert spread == pytest.approx(0.5, rel=0.2)


def test_what_lasts_for_a_moment_evens_out() -> None:
    rng = random.Random(1)
    jittery = moments(*(rng.choice([0.0005, 0.0015]) for _ in range(8000)))
    spread = compute_spread([jittery])
    assert spread is not None
    assert spread < 0.03  # a single piece differs by 0.5


def test_a_thread_that_is_slower_than_another_counts() -> None:
    spread = compute_spread([moments(*[0.001] * 5000), moments(*[0.002] * 2500)])
    assert spread is not None
    assert 0.2 < spread < 0.5


@pytest.mark.parametrize("threads", [[], [[]], [[1.0]], [moments(*[0.001] * 1900)]])
def test_too_little_work_tells_nothing(threads: list[list[float]]) -> None:
    assert compute_spread(threads) is None


@pytest.mark.parametrize(
    ("spread", "state"),
    [(0.03, "good"), (0.07, "doubtful"), (0.2, "bad"), (None, "unknown")],
)
def test_runs_should_differ_little(spread: float | None, state: str) -> None:
    finding = judge_noise(spread)
    assert finding.state == state
    assert bool(finding.todo) == (state in ("doubtful", "bad"))
