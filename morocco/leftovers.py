"""The containers that a suite left behind when it was killed: found by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morocco.host import is_alive_since

if TYPE_CHECKING:
    from docker import DockerClient


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
            client.api.remove_container(box["Id"], v=True, force=True)
    return len(orphans)
