"""Podman of an ordinary user, whose containers may have no control groups of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from docker import DockerClient

from engines import require_podman
from gpu_machine import require_root
from morocco.targets.probe import pack_programs
from runs import TIMEOUT, read_log, read_record, run_time, until

NAME = "morocco-tests"
MIB = 2**20
PROGRAMS = ("/bin/sh", "/bin/cat", "/bin/sleep", "/usr/bin/head", "/usr/bin/tr")
HOLDER = "held=$(head -c 30000000 /dev/zero | tr '\\000' x); cat; sleep 1.5"
READING = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
"""The right to read all files, for our own may be hidden from other users."""

pytestmark = [pytest.mark.docker, pytest.mark.podman]


class User:
    """An ordinary user of this machine, with a folder and an engine."""

    def __init__(self, root: list[str], folder: Path) -> None:
        self._root, self.folder = root, folder
        self.address = f"unix://{folder}/podman.sock"

    def run_as_root(self, *command: str) -> None:
        subprocess.run([*self._root, *command], check=True, stdout=subprocess.DEVNULL)

    def start(
        self,
        *command: str,
        rights: tuple[str, ...] = ("--inh-caps=-all",),
        stderr: int = subprocess.PIPE,
        **env: str,
    ) -> Process:
        """Start a command of this user, in an environment of its own."""
        ids = ("--reuid", NAME, "--regid", NAME, "--init-groups", *rights)
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": self.folder,
            "XDG_RUNTIME_DIR": self.folder,
            "CONTAINERS_CONF": self.folder / "containers.conf",
            **env,
        }
        clean = ("env", "-i", *(f"{name}={value}" for name, value in settings.items()))
        return subprocess.Popen(
            [*self._root, "setpriv", *ids, *clean, *command],
            cwd=self.folder,
            stderr=stderr,
            text=True,
        )

    def end_all(self) -> None:
        """End all processes of the user; Podman keeps some, and starts itself anew in others."""

        def none_is_left() -> bool:
            every = psutil.process_iter(["pid", "username", "status"])
            users = [one.info for one in every if one.info["username"] == NAME]
            own = [one["pid"] for one in users if one["status"] != psutil.STATUS_ZOMBIE]
            for pid in own:
                self.run_as_root("sh", "-c", f"kill -KILL {pid} || true")
            return not own

        until(none_is_left)

    def is_served(self) -> bool:
        """Return whether the user's engine listens; its socket is there some moments before."""
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.address.removeprefix("unix://")) == 0

    def measure(self, log: Path, *options: str) -> tuple[int, str]:
        """Run `bench`; return its exit code and what it said."""
        sizes = ("--input-size", "100", "--batch-size", "32", "--gpus", "none")
        data = str(self.folder / "data")
        words = ("-m", "morocco", "bench", "holder", data, "parus", "-o", str(log), *sizes)
        command = (sys.executable, *words, *options)
        process = self.start(*command, rights=READING, CONTAINER_HOST=self.address)
        _, told = process.communicate(timeout=TIMEOUT)
        return process.returncode, told


Process = subprocess.Popen[str]


@pytest.fixture
def user(data_dir: Path) -> Iterator[User]:
    """A user whose Podman has the image `holder`, which holds 30 MB of memory."""
    conf = Path(tempfile.gettempdir()) / "podman" / "containers.conf"
    require_podman()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="user-"))
        user = User(require_root(), folder)
        stack.callback(user.run_as_root, "rm", "-rf", str(folder))
        # A test that was killed may have left the user.
        user.run_as_root("sh", "-c", f"id {NAME} >/dev/null || useradd --no-create-home {NAME}")
        stack.callback(user.run_as_root, "userdel", NAME)
        (folder / "containers.conf").write_text(conf.read_text() if conf.exists() else "")
        shutil.copytree(data_dir, folder / "data")
        user.run_as_root("chown", "-R", NAME, str(folder))
        serve = ("podman", "system", "service", "--time=0", user.address)
        stack.callback(user.start(*serve, stderr=subprocess.DEVNULL).wait)
        stack.callback(user.end_all)
        until(user.is_served)
        with closing(DockerClient(user.address)) as client:
            entrypoint = f'ENTRYPOINT ["/bin/sh", "-c", "{HOLDER}"]'.replace("\\", "\\\\")
            client.api.import_image_from_data(
                pack_programs(*PROGRAMS), repository="holder", changes=[entrypoint]
            )
        yield user


def test_a_container_of_an_ordinary_user_is_measured(user: User) -> None:
    log = user.folder / "logs" / "parus" / "100_32_01.jsonl"
    code, told = user.measure(log, "--memory", "64m")
    assert code == 0 or (code == 4 and "does not enforce memory" in told), told
    code, told = user.measure(log, "--force")
    assert code == 0, told
    record = read_record(log)
    assert record["target"]["engine"].startswith("Podman Engine ")
    assert 1.5 < run_time(read_log(log)) < 10
    assert record["predictions"]["count"] == 100
    assert record["peaks"]["ram"] > 30_000_000
    assert record["peaks"]["ram_source"] in ("cgroup", "pss")
