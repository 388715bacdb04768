"""The options that shape a run, defined once for `bench`, `suite` and the run record."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal

from morocco.util.units import GIB, Bytes, Seconds

PullPolicy = Literal["missing", "always", "never"]

_UNRECORDED = {"recorded": False}
"""Marks options that say how a run is organised, not under which conditions it is measured."""
_CONDITION = {"condition": True}
"""Marks options that make a run a different one when `suite` looks for finished runs."""

MAX_PIDS = 8192
"""Several times what a model with threads for 256 cores takes, a quarter of what Linux has."""
OOM_SCORE = 1000
"""The highest: where memory runs out, the kernel ends the target before anything else."""


@dataclass(frozen=True)
class ContainerOptions:
    """The options that only a container can honour; a bare process runs as it is."""

    pull: PullPolicy = field(default="missing", metadata=_UNRECORDED)
    network: str = field(default="none", metadata=_CONDITION)
    memory: str | None = field(default=None, metadata=_CONDITION)
    """A limit in Docker's notation: 8g, 512m; "none"; None for somewhat less than the machine's."""
    cpus: float | None = field(default=None, metadata=_CONDITION)
    shm_size: str = field(default="1g", metadata=_CONDITION)
    read_only: bool = field(default=False, metadata=_CONDITION)
    """Whether only /tmp, /dev/shm and the home folder can be written to, in memory."""
    pids_limit: int | None = MAX_PIDS
    """Processes and threads; None for no limit."""
    cap_add: tuple[str, ...] = ()
    """Capabilities beside those that every container has."""


@dataclass(frozen=True)
class RunOptions:
    """The options that `bench` and `suite` share; the fields are named like the flags."""

    gpus: str = "auto"
    rate: float = 3.0
    """Samples per second."""
    timeout: Seconds | None = None
    raw_output: bool = field(default=False, metadata=_CONDITION)
    """Whether the target may print something else than predictions."""
    oom_score_adj: int = OOM_SCORE
    container: ContainerOptions = field(default_factory=ContainerOptions)
    env: tuple[str, ...] = field(default=(), repr=False, metadata=_CONDITION)
    """`KEY=VALUE` or `KEY`; the values may be secret."""
    unset: tuple[str, ...] = field(default=(), metadata=_UNRECORDED)
    """Variables of this environment that a bare process does not inherit."""
    cores: tuple[int, ...] = field(default=(), metadata=_UNRECORDED)
    """The only cores the target may use; empty for all."""
    suite: str | None = field(default=None, metadata=_UNRECORDED)
    """The suite the run belongs to, so that the leftovers of a killed one can be found."""

    def with_container(self, **changes: Any) -> RunOptions:
        """Return these options with some of the container's replaced."""
        return replace(self, container=replace(self.container, **changes))

    def for_record(self) -> dict[str, Any]:
        """Return the recorded options, flat; of variables only the names."""
        values = vars(self) | vars(self.container)
        values["env"] = [setting.partition("=")[0] for setting in self.env]
        values["cap_add"] = list(self.container.cap_add)
        return {
            option.name: values[option.name] for option in _list_options() if _is_recorded(option)
        }


def _list_options() -> Iterator[Field[Any]]:
    for option in fields(RunOptions):
        if option.name == "container":
            yield from fields(ContainerOptions)
        else:
            yield option


def _is_recorded(option: Field[Any]) -> bool:
    return bool(option.metadata.get("recorded", True))


CONDITIONS = tuple(option.name for option in _list_options() if option.metadata.get("condition"))
"""The recorded options that make a run a different one."""
CONTAINER_OPTIONS = tuple(option.name for option in fields(ContainerOptions))


def build_run_options(values: dict[str, Any]) -> RunOptions:
    """Take the run options out of all parsed options of a command."""
    container = ContainerOptions(**{name: values.pop(name) for name in CONTAINER_OPTIONS})
    own = {
        option.name: values.pop(option.name)
        for option in fields(RunOptions)
        if option.name in values
    }
    return RunOptions(container=container, **own)


def parse_env(settings: Sequence[str]) -> dict[str, str]:
    """Return the variables of `KEY=VALUE` and of `KEY`, which takes its value from here.

    Raises KeyError for a variable that is not set here.
    """
    env = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        env[key] = value if equals else os.environ[key]
    return env


_SALT = os.urandom(16).hex()
"""One for all records of this process: a digest takes 50 ms on purpose."""


def digest_env(settings: Sequence[str]) -> str | None:
    """Return `scrypt:SALT:DIGEST` of the values of variables; None if there are none."""
    return _digest(_list_variables(settings), _SALT) if settings else None


def may_be_digest_of(digest: str | None, settings: Sequence[str]) -> bool:
    """Return False if a digest shows that variables had other values, or were others."""
    kind, _, rest = (digest or "").partition(":")
    if kind != "scrypt":  # a record without variables, or of an older or a newer version
        return True
    return _digest(_list_variables(settings), rest.partition(":")[0]) == digest


def _list_variables(settings: Sequence[str]) -> str:
    return json.dumps(parse_env(settings), sort_keys=True)


@cache
def _digest(secret: str, salt: str) -> str:
    """Return a digest that is slow to compute: records are published, and secrets may be short."""
    salted = salt.encode(errors="surrogatepass")
    digest = hashlib.scrypt(secret.encode(), salt=salted, n=2**14, r=8, p=1, dklen=32)
    return f"scrypt:{salt}:{digest.hex()}"


_MB = 2**20
_ROUND_TO = 256
"""MB."""


def limit_memory(ram: Bytes, containers: int = 1) -> str:
    """Return what each of some containers may have of the RAM at most, in Docker's notation.

    A part is left for the system, the engine and morocco: 5 %, but at least 1 GB or, on a small
    machine, a quarter. Rounded down, because the RAM that the kernel reports differs a little from
    boot to boot while the limit must not.
    """
    kept = max(ram // 20, min(GIB, ram // 4))
    part = (ram - kept) // containers // _MB
    return f"{part // _ROUND_TO * _ROUND_TO or part}m"


def format_cores(cores: Sequence[int]) -> str:
    """Return cores in the notation of Docker and taskset: `0,1,4`."""
    return ",".join(map(str, cores))
