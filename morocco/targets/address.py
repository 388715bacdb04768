"""Where the container engine listens: variables, the current Docker context, default sockets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from morocco.errors import EngineError
from morocco.util.json import Object, parse_object


@dataclass(frozen=True)
class Address:
    """The address of an engine, and what named it."""

    url: str
    origin: str
    tls: bool = False
    """Whether a context has certificates for it, which an engine of this machine does not need."""

    def __str__(self) -> str:
        return f"{self.url} ({self.origin})"


def find_address(env: Mapping[str, str] = os.environ, root: Path = Path("/")) -> Address:
    """Return the address of the engine to use: what `docker` uses, else what Podman listens on.

    Raises EngineError if the Docker context cannot be read.
    """
    if url := env.get("DOCKER_HOST"):
        return Address(url, "DOCKER_HOST")
    if (context := _find_context(env)) is not None:
        return context
    if url := env.get("CONTAINER_HOST"):
        return Address(url, "CONTAINER_HOST")
    return _find_socket(env, root)


def _find_context(env: Mapping[str, str]) -> Address | None:
    """Return the address in the current Docker context, None if no context was chosen."""
    folder = Path(env.get("DOCKER_CONFIG") or Path(env.get("HOME", "~"), ".docker").expanduser())
    name = env.get("DOCKER_CONTEXT") or _read_current_context(folder / "config.json")
    if not name:
        return None
    origin = f"Docker context {name}"
    if name == "default":
        return Address(_DOCKER.url, origin)
    key = hashlib.sha256(name.encode()).hexdigest()  # how Docker names the folders of a context
    meta = folder / "contexts" / "meta" / key / "meta.json"
    tls = (folder / "contexts" / "tls" / key).is_dir()
    return Address(_read_host(meta, origin), origin, tls)


def _read_current_context(file: Path) -> str | None:
    try:
        name = _read_json(file, "Docker's configuration").get("currentContext")
    except OSError:  # most users have no such file
        return None
    return name if isinstance(name, str) else None


def _read_host(file: Path, context: str) -> str:
    try:
        host = _read_json(file, context)["Endpoints"]["docker"]["Host"]
    except (OSError, KeyError, TypeError):
        raise EngineError(
            f"There is no address of an engine for the {context} in {file}. List the contexts "
            "with `docker context ls`, choose one with `docker context use`, or set DOCKER_HOST."
        ) from None
    return str(host)


def _read_json(file: Path, what: str) -> Object:
    try:
        return parse_object(file.read_bytes())
    except ValueError as error:
        raise EngineError(
            f"Cannot read the {what} in {file}: {error}. Mend it, or set DOCKER_HOST."
        ) from None


_DOCKER = Address("unix:///var/run/docker.sock", "the default")


def _find_socket(env: Mapping[str, str], root: Path) -> Address:
    """Return Docker's socket, or Podman's where only that can be used."""
    if not (root / "var/run/docker.sock").exists():
        for socket in _list_podman_sockets(env):
            if os.access(root / socket, os.W_OK):
                return Address(f"unix:///{socket}", "the default of Podman")
    return _DOCKER


def _list_podman_sockets(env: Mapping[str, str]) -> Iterator[str]:
    """Yield where Podman listens for this user, and for root, below the root folder."""
    if os.getuid():
        runtime = env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        yield f"{runtime.strip('/')}/podman/podman.sock"
    yield "run/podman/podman.sock"
