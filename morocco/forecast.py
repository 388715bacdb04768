"""How long runs will take, from those that were made: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median

from morocco.plan import Job
from morocco.units import Seconds

OVERHEAD: Seconds = 0.5
"""What a container takes beside its run: to be created, started and removed."""


class Forecast:
    """The times of runs by their kind."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int, int], list[Seconds]] = {}

    def learn(self, job: Job, taken: Seconds) -> None:
        """Take in how long a job took in all."""
        if job.index is not None:  # a warm-up takes longer than the runs it warms up for
            self._times.setdefault(job.kind, []).append(taken)

    def expect(self, job: Job) -> Seconds | None:
        """Return the median time of runs of this kind; None where there was none."""
        times = self._times.get(job.kind)
        return median(times) if times else None

    def guess(self, jobs: Iterable[Job]) -> Seconds | None:
        """Return about how long all of `jobs` take one after the other; None before any run.

        A kind without a run takes as long as the mean of those of the same sort, short or long.
        """
        total = 0.0
        for job in jobs:
            time = self.expect(job)
            if time is None:
                time = self._mean(single=job.records.count == 1)
            if time is None:
                return None
            total += time
        return total

    def _mean(self, *, single: bool) -> Seconds | None:
        alike = [median(times) for kind, times in self._times.items() if (kind[2] == 1) is single]
        return fmean(alike) if alike else None
