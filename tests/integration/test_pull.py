"""Images that have to be fetched first, from a real registry that the tests start."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import DockerClient

from runs import Bench, until
from suite_runs import Suites

TERMINAL = {"TERM": "xterm-256color"}

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Remote:
    """An image that is in the registry and not on this machine."""

    name: str
    client: DockerClient

    @property
    def is_here(self) -> bool:
        return bool(self.client.images.list(self.name))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry of this test's own."""
    program = shutil.which("docker-registry")
    if program is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("NOT TESTED: NO REGISTRY. Install it: sudo apt-get install docker-registry.")
    folder = tmp_path_factory.mktemp("registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
        f"http: {{addr: '{address}'}}\n"
    )
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([str(program), "serve", str(config)], stdout=log, stderr=log)
    try:
        until(lambda: _answers(address))
        yield address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that needs no other file: it prints what it reads."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "echo.c").write_text(
        "#include <stdio.h>\nint main() { for (int c; (c = getchar()) != EOF; putchar(c)); }\n"
    )
    subprocess.run(["cc", "-static", "-o", "echo", "echo.c"], cwd=folder, check=True)
    return folder / "echo"


@pytest.fixture
def remote(registry: str, engine: DockerClient, program: Path) -> Iterator[Remote]:
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as tar:
        tar.add(program, "echo")
        blob = tarfile.TarInfo("blob")  # which makes the layer one that nobody has
        blob.size = 5_000_000
        tar.addfile(blob, io.BytesIO(os.urandom(blob.size)))
    name = f"{registry}/echo"
    engine.api.import_image_from_data(
        files.getvalue(), repository=name, tag="latest", changes=['ENTRYPOINT ["/echo"]']
    )
    for event in engine.images.push(name, tag="latest", stream=True, decode=True):
        assert "error" not in event, event
    engine.images.remove(name, force=True)
    remote = Remote(name, engine)
    assert not remote.is_here
    yield remote
    if remote.is_here:
        engine.images.remove(name, force=True)


def test_a_missing_image_is_pulled_and_measured(remote: Remote, bench: Bench) -> None:
    run = bench(remote.name).succeeds()
    assert "Pulling the image" in run.stderr
    assert remote.is_here


def test_an_image_that_is_here_is_not_pulled_again(remote: Remote, bench: Bench) -> None:
    bench(remote.name).succeeds()
    assert "Pulling" not in bench(remote.name).succeeds().stderr
    assert "Pulling" in bench(remote.name, "--pull", "always").succeeds().stderr


def test_pull_never_says_that_the_image_is_not_here(remote: Remote, bench: Bench) -> None:
    assert remote.name in bench(remote.name, "--pull", "never").fails(4)
    assert not remote.is_here


def test_the_digest_of_a_pulled_image_stands_in_the_record(
    remote: Remote, bench: Bench, log: Path
) -> None:
    bench(remote.name, "-o", log).succeeds()
    assert f"{remote.name}@sha256:" in log.with_suffix(".json").read_text()


def test_a_terminal_sees_how_far_the_pull_is(remote: Remote, bench: Bench, log: Path) -> None:
    ours, theirs = pty.openpty()
    with bench.start(remote.name, "-o", log, stderr=theirs, env=TERMINAL) as run:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # how Linux says that nobody writes any more
            pass
        finally:
            os.close(ours)
        run.finish()
    assert run.process.returncode == 0
    assert b"Pulling the image" in seen
    assert re.search(rb"(Downloading|Extracting).*MB", seen)
    assert b"100 predictions" in seen


def test_a_name_the_registry_does_not_have_is_one_clear_error(registry: str, bench: Bench) -> None:
    error = bench(f"{registry}/nosuch").fails(4)
    assert f"{registry}/nosuch" in error
    assert "cannot be pulled" in error


def test_a_suite_pulls_what_is_missing_before_its_first_run(remote: Remote, suite: Suites) -> None:
    lines = suite("--repeats", 1, target=remote.name).succeeds().stderr.splitlines()
    assert lines[0] == "Pulling the image …"
    assert lines[1].startswith("[0/2] parus/warm-up")
    assert remote.is_here


def test_a_suite_pulls_no_image_twice_lest_its_runs_be_of_two(
    remote: Remote, suite: Suites
) -> None:
    told = suite("--pull", "always", "--repeats", 1, target=remote.name).succeeds().stderr
    assert told.count("Pulling") == 1
