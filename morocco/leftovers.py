"""The containers that a suite left behind when it was killed: found by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morocco.host import is_alive_since

if TYPE_CHECKING:
    from docker import DockerClient

_GOING = (404, 409)
"""What the engine answers of a container that is gone, or is being removed by itself."""


def remove_containers(client: DockerClient, suite: str) -> int:
    """Remove the containers of a suite whose morocco is gone, and return how many they were."""
    from morocco.container import LABEL, SUITE_LABEL
    from morocco.engine import engine_errors

    with engine_errors("Cannot look for containers of a killed run"):
        found = client.api.containers(all=True, filters={"label": f"{SUITE_LABEL}={suite}"})
        orphans = [
            box for box in found if not is_alive_since(int(box["Labels"][LABEL]), box["Created"])
        ]
        for box in orphans:
            _remove(client, box["Id"])
    return len(orphans)


def _remove(client: DockerClient, container: str) -> None:
    from docker.errors import APIError

    try:
        client.api.remove_container(container, v=True, force=True)
    except APIError as error:
        if error.status_code not in _GOING:
            raise
