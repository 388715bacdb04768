"""What of a command line shapes a run, whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from morocco.units import Seconds

PullPolicy = Literal["missing", "always", "never"]


@dataclass(frozen=True)
class RunOptions:
    """The options that `bench` and `suite` share, as they were parsed."""

    gpus: str = "auto"
    rate: float = 3.0
    timeout: Seconds | None = None
    pull: PullPolicy = "missing"
    network: str = "none"
    memory: str | None = None
    cpus: float | None = None
    shm_size: str = "1g"
    env: tuple[str, ...] = field(default=(), repr=False)
    """Their values may be secret."""
    cores: tuple[int, ...] = ()
    """The only cores it may use; empty for all."""
    suite: str | None = None
    """The suite it belongs to, so that what a killed one left behind can be found."""

    def for_record(self) -> dict[str, Any]:
        """Return the options that shape a run; the values of variables may be secret."""
        shaping = ("gpus", "rate", "timeout", "network", "memory", "cpus", "shm_size")
        names = [setting.partition("=")[0] for setting in self.env]
        return {name: getattr(self, name) for name in shaping} | {"env": names}


def format_cores(cores: tuple[int, ...]) -> str:
    """Return cores as Docker and taskset write them: `0,1,4`."""
    return ",".join(map(str, cores))
