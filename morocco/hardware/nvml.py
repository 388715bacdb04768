"""The NVML library: the only room that imports pynvml.

A value that the GPU or its driver does not provide is None; any other failure is an NvmlError.
Nothing here changes a setting of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, byref, c_uint, c_ulonglong
from dataclasses import dataclass
from typing import Any, Literal

from morocco.util.units import Bytes

Kind = Literal["Compute", "Graphics"]

# Return codes of the C library, the same in all its versions.
NOT_SUPPORTED, NO_PERMISSION, INSUFFICIENT_SIZE = 3, 4, 7
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 9, 12, 13
_UNAVAILABLE = (NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND)
_NOT_AVAILABLE = c_ulonglong(-1).value


class NvmlError(Exception):
    """NVML refused a call; `code` is its return code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def no_driver(self) -> bool:
        """Whether this machine simply has no NVIDIA driver."""
        return self.code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND)


class _Entry(Structure):
    """A process in a list of version 2 or later (`nvmlProcessInfo_v2_t`)."""

    _fields_ = (
        ("pid", c_uint),
        ("memory", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    )


class _FirstEntry(Structure):
    """A process in a list of the first version (`nvmlProcessInfo_v1_t`)."""

    _fields_ = (("pid", c_uint), ("memory", c_ulonglong))


# 2 before 3: drivers 535.43 to 535.86 changed the entries of version 3 without a new number.
_LISTS: tuple[tuple[str, type[Structure]], ...] = (
    ("_v2", _Entry),
    ("_v3", _Entry),
    ("", _FirstEntry),
)


@dataclass(frozen=True)
class ProcessMemory:
    """One process on one GPU."""

    pid: int
    """As the driver numbers processes."""
    memory: Bytes | None
    """None if the driver does not report it."""


class Nvml:
    """The library, loaded and initialised; raises NvmlError if that fails."""

    def __init__(self) -> None:
        import pynvml  # large, and needed only when a run begins

        self._pynvml: Any = pynvml
        self._lists = {"Compute": list(_LISTS), "Graphics": list(_LISTS)}
        self.call("nvmlInit")

    def close(self) -> None:
        """Release the library; raises NvmlError."""
        self.call("nvmlShutdown")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of pynvml; raises NvmlError."""
        return self._translate(getattr(self._pynvml, name), *arguments)

    def query(self, name: str, *arguments: Any) -> Any | None:
        """Call a function of pynvml; None if its value is not available. Raises NvmlError."""
        try:
            return self.call(name, *arguments)
        except NvmlError as error:
            if error.code in _UNAVAILABLE:
                return None
            raise

    def ask(self, name: str, *arguments: Any) -> Any | None:
        """Call a function whose value can be done without; None if that fails in any way."""
        function = getattr(self._pynvml, name, None)  # an older pynvml may lack it
        try:
            return None if function is None else self._translate(function, *arguments)
        except NvmlError:
            return None

    def list_processes(self, handle: Any, kind: Kind) -> list[ProcessMemory] | None:
        """Return the processes on a GPU, None if they are not listed; raises NvmlError."""
        lists = self._lists[kind]
        if not lists:
            return None
        try:
            listed: list[ProcessMemory] = self._translate(self._list, handle, kind, *lists[0])
            return listed
        except NvmlError as error:
            if error.code not in _UNAVAILABLE:
                raise
            if error.code != FUNCTION_NOT_FOUND:
                return None
        lists.pop(0)  # an older driver: this version is not tried again
        return self.list_processes(handle, kind)

    def _list(
        self, handle: Any, kind: Kind, suffix: str, entry: type[Structure]
    ) -> list[ProcessMemory]:
        """Read the list in one call; pynvml makes two, and each takes the driver's lock."""
        name = f"nvmlDeviceGet{kind}RunningProcesses{suffix}"
        function = self._pynvml._nvmlGetFunctionPointer(name)
        for room in (64, 1024, 16384):
            count, entries = c_uint(room), (entry * room)()
            code = function(handle, byref(count), entries)
            if code != INSUFFICIENT_SIZE:
                break
        if code:
            raise self._pynvml.NVMLError(code)
        return [
            ProcessMemory(e.pid, None if e.memory == _NOT_AVAILABLE else e.memory)
            for e in entries[: count.value]
        ]

    def _translate(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, turning an error of pynvml into an NvmlError."""
        try:
            return function(*arguments)
        except self._pynvml.NVMLError as error:
            raise NvmlError(str(error), error.value) from None
