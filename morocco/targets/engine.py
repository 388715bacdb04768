"""The container engine: connecting, images, leftovers of killed runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import docker
from docker import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.images import Image
from docker.utils import parse_host, parse_repository_tag
from requests.exceptions import RequestException

from morocco.errors import EngineError
from morocco.hardware.host import is_alive_since, may_live_since, name_pid_space
from morocco.targets.address import Address, find_address
from morocco.targets.options import PullPolicy
from morocco.targets.target import OnPull, PullEvent
from morocco.util.units import Bytes

LABEL = "morocco"
"""Label on every container that morocco starts: the id of the morocco process."""
SPACE_LABEL = "morocco.pids"
"""Label on them too: where that id counts, see `name_pid_space`."""
SUITE_LABEL = "morocco.suite"
"""Label on the containers of a suite: which suite."""
PROBE_LABEL = "morocco.probe"
"""Label on an image that morocco made for a moment: the id of the morocco process."""

_CUDA = re.compile(r"^CUDA_VERSION=(\d+\.\d+)", re.MULTILINE)
_NEEDED_CUDA = re.compile(r"^NVIDIA_REQUIRE_CUDA=.*?cuda>=(\d+\.\d+)", re.MULTILINE)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_ENGINES = {"Docker": "Docker Engine", "Libpod": "Podman Engine"}
"""What engines call themselves in the header `Server`, and what they are called."""
_ANY_VERSION = "1.41"
_ANSWER_TIMEOUT = 600
"""Seconds: a start from a cold disk, or a silent stretch of a pull, may take minutes."""


def connect() -> DockerClient:
    """Return a client; raises EngineError if the engine is down or on another machine."""
    client, _ = open_engine()
    return client


def open_engine(timeout: int = _ANSWER_TIMEOUT) -> tuple[DockerClient, Mapping[str, Any]]:
    """Return a client and what the engine says of itself; raises EngineError as `connect` does.

    `timeout` is in seconds, for each of its answers.
    """
    address = find_address()
    try:
        if not _is_local(address):
            raise _not_local(address)
        client = _open(address, timeout)
        system = client.info()
    except (DockerException, RequestException, ValueError) as error:
        raise EngineError(
            f"Cannot reach the container engine at {address}: {root_cause(error)}. Start it "
            "(sudo systemctl start docker; systemctl --user start podman.socket), join the group "
            "`docker`, or set DOCKER_HOST. Without an engine, morocco can measure a bare process: "
            "exec:COMMAND."
        ) from None
    if system.get("OperatingSystem") == "Docker Desktop":
        client.close()
        raise _not_local(address)
    return client, system


def _open(address: Address, timeout: int) -> DockerClient:
    """Return a client that speaks the engine's version of the API."""
    how: dict[str, Any] = {
        "timeout": timeout,
        "environment": {**os.environ, "DOCKER_HOST": address.url},
    }
    with closing(docker.from_env(version=_ANY_VERSION, **how)) as probe:
        version = _ping(probe).get("Api-Version")  # asked for all versions, Podman takes a second
    return docker.from_env(version=version, **how)


def _ping(client: DockerClient) -> Mapping[str, str]:
    """Return the headers of the engine's shortest answer."""
    answer = client.api.get(f"{client.api.base_url}/_ping")
    answer.raise_for_status()
    headers: Mapping[str, str] = answer.headers
    return headers


def _is_local(address: Address) -> bool:
    url = urlsplit(str(parse_host(address.url)))
    return "unix" in url.scheme or (url.hostname in _LOCAL_HOSTS and not address.tls)


def _not_local(address: Address) -> EngineError:
    return EngineError(
        f"The engine at {address} runs on another machine (or in a virtual machine, as Docker "
        "Desktop's), where morocco cannot see the processes it measures. Run morocco on the "
        "engine's own Linux host."
    )


def read_engine_name(client: DockerClient) -> str:
    """Return name and version: `Docker Engine 20.10.24`, `Podman Engine 4.9.3`."""
    program, _, version = _ping(client).get("Server", "").partition(" ")[0].partition("/")
    return f"{_ENGINES.get(program, program or 'Engine')} {version}".strip()


def is_podman(engine: str) -> bool:
    """Return whether the name of an engine is that of Podman."""
    return engine.startswith(_ENGINES["Libpod"])


def ensure_image(client: DockerClient, name: str, policy: PullPolicy, on_pull: OnPull) -> Image:
    """Return the image, pulled first if the policy says so."""
    if policy != "always":
        try:
            with engine_errors(f"Cannot look up the image {name}"):
                return client.images.get(name)
        except _Missing:
            if policy == "never":
                raise EngineError(
                    f"There is no image {name} on this machine. Build it, or let morocco pull it "
                    "with --pull missing."
                ) from None
    try:
        return _pull(client, name, on_pull)
    except _Missing as error:
        raise _not_pullable(name, str(error)) from None


@dataclass(frozen=True)
class ImageFacts:
    """What the engine tells of an image."""

    size: Bytes
    """Unpacked; images may share a part of it."""
    cuda: str | None
    """The version of CUDA in it, or the oldest that it runs with: "12.4"; None if not told."""


def read_image(client: DockerClient, name: str) -> ImageFacts | None:
    """Return what is known of an image; None if it is not on this machine."""
    try:
        with engine_errors(f"Cannot look up the image {name}"):
            found = client.images.get(name).attrs
    except _Missing:
        return None
    variables = "\n".join((found.get("Config") or {}).get("Env") or ())
    return ImageFacts(int(found.get("Size") or 0), parse_cuda(variables))


def list_images(client: DockerClient) -> list[str]:
    """Return the names of the images on this machine, with their tags."""
    with engine_errors("Cannot list the images"):
        return [tag for image in client.images.list() for tag in image.tags]


def parse_cuda(variables: str) -> str | None:
    """Return the version of CUDA that the variables of an image tell, one a line."""
    told = _CUDA.search(variables) or _NEEDED_CUDA.search(variables)
    return told[1] if told else None


def _pull(client: DockerClient, name: str, on_pull: OnPull) -> Image:
    repository, tag = parse_repository_tag(name)
    try:
        for event in client.api.pull(repository, tag or "latest", stream=True, decode=True):
            if "error" in event:
                raise _not_pullable(name, event["error"])
            on_pull(_parse_pull_event(event))
        return client.images.get(name)
    except (APIError, RequestException) as error:
        raise _not_pullable(name, root_cause(error)) from None


def _parse_pull_event(event: dict[str, Any]) -> PullEvent:
    detail = event.get("progressDetail") or {}
    return PullEvent(
        event.get("id", ""),
        event.get("status", ""),
        int(detail.get("current") or 0),
        int(detail.get("total") or 0),
    )


def _not_pullable(name: str, cause: str) -> EngineError:
    return EngineError(
        f"The image {name} cannot be pulled: {cause.rstrip('.')}. Check its name; for a private "
        "image, run `docker login` first; for a local image, omit --pull."
    )


class _Missing(EngineError):
    """The engine has no such object."""


@contextmanager
def engine_errors(failed: str) -> Iterator[None]:
    """Turn errors of the engine, and of the connection to it, into EngineError("{failed}: …")."""
    try:
        yield
    except (NotFound, ImageNotFound) as error:
        raise _Missing(f"{failed}: {error.explanation}") from None
    except APIError as error:
        raise EngineError(f"{failed}: {root_cause(error)}") from None
    except (RequestException, OSError) as error:
        raise EngineError(
            f"{failed}: the connection to the container engine is lost ({root_cause(error)}). See "
            "its log: journalctl -u docker, or podman."
        ) from None


def root_cause(error: BaseException) -> str:
    """Return the innermost reason, without the layers of HTTP errors around it."""
    if isinstance(error, APIError) and error.explanation:
        return str(error.explanation).strip()
    while True:
        inner = next((arg for arg in reversed(error.args) if isinstance(arg, BaseException)), None)
        following = inner or error.__cause__
        if following is None:
            break
        error = following
    return str(getattr(error, "strerror", None) or error).strip()


_ALREADY_REMOVED = (404, 409)
"""The engine's answers for a container that is gone, or that it is removing already."""


def remove_containers(client: DockerClient, suite: str) -> int:
    """Remove the containers of a suite whose morocco process is gone; return how many."""
    with engine_errors("Cannot list the containers of killed runs"):
        found = client.api.containers(all=True, filters={"label": f"{SUITE_LABEL}={suite}"})
        orphans = [
            box for box in found if not is_alive_since(int(box["Labels"][LABEL]), box["Created"])
        ]
        for box in orphans:
            _remove(client, box["Id"])
    return len(orphans)


@contextmanager
def imported_image(
    client: DockerClient, name: str, archive: bytes, entrypoint: Sequence[str]
) -> Iterator[str]:
    """Yield the name of an image of these files, which is removed when the context ends.

    The name has no tag: Podman ignores it.
    """
    changes = [f"ENTRYPOINT {json.dumps(entrypoint)}", f"LABEL {PROBE_LABEL}={os.getpid()}"]
    with engine_errors("Cannot import an image"):
        client.api.import_image_from_data(archive, name, changes=changes)
    try:
        yield name
    finally:
        with suppress(APIError, RequestException):
            client.api.remove_image(name, force=True)


def remove_imported_images(client: DockerClient) -> None:
    """Remove the images of `imported_image` whose morocco process is gone."""
    with engine_errors("Cannot list the images of killed probes"):
        for image in client.api.images(filters={"label": PROBE_LABEL}):
            if not is_alive_since(int(image["Labels"][PROBE_LABEL]), image["Created"]):
                with suppress(APIError):
                    client.api.remove_image(image["Id"], force=True)


def remove_orphans(client: DockerClient) -> int:
    """Remove what killed `bench` commands of this machine left; return how many containers.

    Those of suites are left to their suite.
    """
    space = name_pid_space()
    if space is None:
        return 0
    with engine_errors("Cannot list the containers of killed runs"):
        labels = [LABEL, f"{SPACE_LABEL}={space}"]
        found = client.api.containers(all=True, filters={"label": labels})
        orphans = [box for box in found if _is_orphan(box)]
        for box in orphans:
            _remove(client, box["Id"])
    return len(orphans)


def _is_orphan(box: Mapping[str, Any]) -> bool:
    labels = box["Labels"]
    return SUITE_LABEL not in labels and not may_live_since(int(labels[LABEL]), box["Created"])


def _remove(client: DockerClient, container: str) -> None:
    try:
        client.api.remove_container(container, v=True, force=True)
    except APIError as error:
        if error.status_code not in _ALREADY_REMOVED:
            raise
