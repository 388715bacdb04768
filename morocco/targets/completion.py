"""Completion of TARGET in a shell: the images on this machine, or `exec:`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing

from morocco.errors import MoroccoError
from morocco.targets.target import EXEC_PREFIX
from morocco.tasks import TASKS

_TASK = re.compile(rf"(?<![a-z0-9])({'|'.join(TASKS)})(?![a-z0-9])")
_PATIENCE = 2
"""Seconds; whoever waits at a prompt for longer has typed the name."""


def complete_image(_ctx: object, _param: object, typed: str) -> list[str]:
    """Return the images that begin with `typed`."""
    return _choose([*_list_images(), EXEC_PREFIX], typed)


def complete_model(_ctx: object, _param: object, typed: str) -> list[str]:
    """Return the models whose images begin with `typed`: rubert-{task} for rubert-parus."""
    images = [name for name in _list_images() if _TASK.search(name)]
    return _choose([*(_TASK.sub("{task}", name) for name in images), EXEC_PREFIX], typed)


def _choose(names: Iterable[str], typed: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(typed)]


def _list_images() -> list[str]:
    """Return the names of all images, without `:latest`; none if the engine does not answer."""
    from morocco.targets.engine import list_images, open_engine

    try:
        client, _ = open_engine(_PATIENCE)
        with closing(client):
            return sorted(name.removesuffix(":latest") for name in list_images(client))
    except MoroccoError:
        return []
