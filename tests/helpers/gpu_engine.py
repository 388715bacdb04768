"""An engine that hands out GPUs that do not exist, with a stand-in for NVIDIA's toolkit.

Docker takes a program of this name in its path for the toolkit. What a container then gets is the
variable with its GPUs; the program, which would bring in devices and libraries, does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from docker import DockerClient

from engines import SecondEngine

_TOOLKIT = "nvidia-container-runtime-hook"
_LAUNCH = 'exec /bin/sh -c "$0" "on ${NVIDIA_VISIBLE_DEVICES:-no GPU}" "$@"'
"""Runs the next argument as a script, with the GPUs it was given in its command line."""
_SLEEPER = "records=$(cat); sleep {}; printf '%s\\n' \"$records\""
_TELLER = 'while read -r _; do echo "\\"${NVIDIA_VISIBLE_DEVICES-unset}\\""; done; sleep 1'


class GpuEngine(SecondEngine):
    """Makes images that obey the container contract and run on the GPUs they are given.

    To be there, a GPU that the stand-in for NVML plays has `Process("top:UUID", memory)`: a
    container that was given it is found on it.
    """

    def __init__(self, root: Sequence[str]) -> None:
        super().__init__(root)
        toolkit = self._folder / "toolkit" / _TOOLKIT
        toolkit.parent.mkdir()
        toolkit.write_text("#!/bin/sh\nexit 0\n")
        toolkit.chmod(0o755)
        self._path = f"{toolkit.parent}:{self._path}"  # before a real one
        self.environment = {"DOCKER_HOST": self.address}
        """The variables that make morocco use this engine."""

    def __enter__(self) -> GpuEngine:
        super().__enter__()
        with ExitStack() as stack:
            stack.push(super().__exit__)
            self.client = DockerClient(self.address)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        super().__exit__()

    def sleeper(self, seconds: float) -> str:
        """Make a target that reads all records, sleeps, and prints one line for each."""
        return self.script(f"sleeper-{seconds}", _SLEEPER.format(seconds))

    def teller(self) -> str:
        """Make a target that predicts the UUIDs of its GPUs, or "void", and runs for a second."""
        return self.script("teller", _TELLER)

    def script(self, name: str, script: str) -> str:
        """Make a target that runs a script with sh, cat and sleep."""
        self.make_image(name, "/bin/sh", "-c", _LAUNCH, script)
        return name
