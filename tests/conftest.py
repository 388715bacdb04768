"""Fixtures of all tests: the engine, images that behave as wanted, made-up data."""

from __future__ import annotations

import gc
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from warnings import catch_warnings, simplefilter

import docker
import pytest
from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from hypothesis import settings

from engines import as_root, copy_image, require_podman
from gpu_engine import GpuEngine
from runs import METRONOME, Bench
from suite_runs import Suites

pytest_plugins = ["gpu_machine"]

BASE = "python:3.11-slim"
LABEL = "morocco.tests"
_SESSION = uuid.uuid4().hex
"""Keeps the images of one process of the tests apart from those of another."""
_RUN = os.environ.setdefault("TESTS_RUN", uuid.uuid4().hex)
"""The same in all processes that pytest-xdist starts."""
QUICK = "--rate 2000"
"""The default arguments of a metronome."""

Metronome = Callable[[str], str]
"""Returns the TARGET of a metronome with these arguments."""
Command = Callable[..., str]
"""Returns the TARGET that runs this command."""
BuildImage = Callable[..., str]
Built = dict[tuple[str, str], str]
"""The ids of images by engine, and what they were built of."""

# The background jobs of a shell and the workers of pytest-xdist ignore SIGINT, and so would every
# process they start: a test of Ctrl-C would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("morocco", max_examples=50, deadline=None)
settings.register_profile("quick", max_examples=10, deadline=None)

_MARKS = {
    "browser": {"browser"},
    "docker": {"engine", "docker_engine", "gpu_engine"},
    "slow": {"dist"},
}
"""Each mark, and the fixtures whose users get it."""
_SHARED = ("test_doctor.py", "test_examples.py", "test_gpu_engine.py", "test_pull.py")
"""Files whose tests share a slow fixture or would disturb each other, and so run in one worker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs."""
    for item in items:
        if isinstance(item, pytest.Function):
            for mark, fixtures in _MARKS.items():
                if fixtures & set(item.fixturenames):
                    item.add_marker(mark)
            if "jiant" in item.path.name:
                item.add_marker("training")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Hand out tests one by one, but those that share a slow fixture all at once."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _choose_group
    return scheduler


def _choose_group(nodeid: str) -> str:
    """Return the group of a test, which runs in one worker."""
    file = Path(nodeid.partition("::")[0]).name
    if "jiant" in file:  # each shape of model is trained once
        return "gpt2-tiny" if "gpt2-tiny" in nodeid else "bert-tiny"
    return file if file in _SHARED else nodeid


@pytest.fixture(scope="session")
def docker_engine(built_images: Built) -> Iterator[DockerClient]:
    """A client of the Docker engine; without one, skip the test, or fail in CI."""
    with catch_warnings():
        simplefilter("ignore")  # of the socket that docker-py leaves open when it fails
        client = _connect()
        gc.collect()
    if isinstance(client, str):
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"NOT TESTED: NO DOCKER ENGINE. Start it: sudo systemctl start docker. ({client})")
    with closing(client):
        yield client
        for (name, _), image in built_images.items():
            if name == "docker":
                with suppress(ImageNotFound):  # it went with a name of another test
                    client.images.remove(image, force=True)


def _connect() -> DockerClient | str:
    """Return a client, or the error."""
    try:
        return docker.from_env()
    except DockerException as error:
        return str(error)


@pytest.fixture(scope="session")
def podman_engine(docker_engine: DockerClient) -> Iterator[DockerClient]:
    """A client of the Podman service that TEST_PODMAN_HOST names, which has the base image."""
    with closing(DockerClient(require_podman())) as client:
        copy_image(BASE, docker_engine, client)
        yield client


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the images on Podman, which cannot look up one while another process removes one."""
    address = os.environ.get("TEST_PODMAN_HOST")
    if address and not hasattr(session.config, "workerinput"):
        with closing(DockerClient(address)) as client:
            for image in client.images.list(filters={"label": f"{LABEL}.run={_RUN}"}):
                client.images.remove(str(image.id), force=True)


@pytest.fixture
def engine_name(request: pytest.FixtureRequest) -> str:
    """The engine that runs the containers of a test: docker or podman."""
    spec = getattr(request.node, "callspec", None)  # of a test with parameters
    return "podman" if spec and "podman" in spec.params.values() else "docker"


@pytest.fixture
def engine(engine_name: str, request: pytest.FixtureRequest) -> DockerClient:
    """A client of the engine that runs the containers of a test."""
    client: DockerClient = request.getfixturevalue(f"{engine_name}_engine")
    return client


@pytest.fixture(scope="session")
def built_images() -> Built:
    """The images that are built."""
    return {}


@pytest.fixture
def build_image(engine: DockerClient, engine_name: str, built_images: Built) -> BuildImage:
    """Build each image once; they are removed when all tests are done."""

    def build(dockerfile: str, **arguments: str) -> str:
        key = engine_name, json.dumps([dockerfile, arguments])
        if key not in built_images:
            image, _ = engine.images.build(
                fileobj=_context(dockerfile),
                custom_context=True,
                buildargs=arguments,
                labels={LABEL: _SESSION, f"{LABEL}.run": _RUN},
                rm=True,
                forcerm=True,
            )
            built_images[key] = str(image.id)
        return built_images[key]

    return build


def _context(dockerfile: str) -> io.BytesIO:
    """Return a build context: the Dockerfile and the metronome."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        tar.add(METRONOME, METRONOME.name)
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile.encode())
        tar.addfile(entry, io.BytesIO(dockerfile.encode()))
    context.seek(0)
    return context


@pytest.fixture
def metronome_image(build_image: BuildImage) -> Metronome:
    """Make an image of a metronome with its arguments baked in."""
    dockerfile = METRONOME.with_name("Dockerfile").read_text()
    return lambda arguments: build_image(
        # Not as a build argument: Podman's cache takes no notice of those.
        f"{dockerfile}ENV METRONOME={json.dumps(f'{QUICK} {arguments}')}\n"
    )


@pytest.fixture
def command_image(build_image: BuildImage) -> Command:
    """Make an image that runs a command."""
    return lambda *words: build_image(f"FROM {BASE}\nENTRYPOINT {json.dumps(words)}\n")


@pytest.fixture(params=["process", pytest.param("container", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of target: what holds for one must hold for the other."""
    return "container" if request.param == "podman" else str(request.param)


@pytest.fixture
def metronome(kind: str, request: pytest.FixtureRequest) -> Metronome:
    """Make a metronome of either kind, from its arguments."""
    if kind == "process":
        return metronome_process
    image: Metronome = request.getfixturevalue("metronome_image")
    return image


def metronome_process(arguments: str) -> str:
    """Return the TARGET of a metronome that is a bare process."""
    return f"exec:{sys.executable} {METRONOME} {QUICK} {arguments}"  # a "python3" may be a script


@pytest.fixture
def command(kind: str, request: pytest.FixtureRequest) -> Command:
    """Make a target of either kind that runs a command."""
    if kind == "process":
        return lambda *words: f"exec:{shlex.join(words)}"
    image: Command = request.getfixturevalue("command_image")
    return image


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of PARus: 100 records of about 200 bytes, each with its own idx."""
    folder = tmp_path_factory.mktemp("data")
    records = [
        {
            "premise": f"Мальчик номер {idx} вышел из дома.",
            "choice1": f"Он взял зонт и {idx} яблок.",
            "choice2": "Он остался спать.",
            "question": "cause" if idx % 2 else "effect",
            "label": idx % 2,
            "idx": idx,
        }
        for idx in range(100)
    ]
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    (folder / "PARus").mkdir()
    (folder / "PARus" / "val.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with 4 KB left."""
    root = as_root()
    if root is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("NOT TESTED: only root can mount a small disk. Run the tests as root.")
    disk = tmp_path / "disk"
    disk.mkdir()
    options = f"size=64k,uid={os.getuid()}"
    subprocess.run([*root, "mount", "-t", "tmpfs", "-o", options, "none", str(disk)], check=True)
    try:
        (disk / "filler").write_bytes(b"x" * (60 * 1024))
        yield disk
    finally:
        subprocess.run([*root, "umount", str(disk)], check=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The path of a log, in a folder that holds nothing else."""
    return tmp_path / "logs" / "parus" / "100_32_01.jsonl"


@pytest.fixture
def bench(data_dir: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Run `morocco bench`; the test must leave no container behind."""
    client = _engine_of(request)
    bench = Bench(data_dir, _environment(request))
    yield bench
    if client:
        left = [name for pid in bench.pids for name in _remove_containers(client, pid)]
        assert not left, f"containers were left behind: {left}"


@pytest.fixture
def suite(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Suites]:
    """Run `morocco suite`; the test must leave no process and no container behind."""
    client = _engine_of(request)
    suites = Suites(tmp_path, _environment(request))
    yield suites
    left: list[object] = list(suites.processes)
    suites.clean_up()
    if client:
        left += [name for pid in suites.pids for name in _remove_containers(client, pid)]
    assert not left, f"processes or containers were left behind: {left}"


def _environment(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the variables that make morocco use the engine of a test."""
    on_podman = request.getfixturevalue("engine_name") == "podman"
    return {"DOCKER_HOST": require_podman()} if on_podman else {}


def _engine_of(request: pytest.FixtureRequest) -> DockerClient | None:
    """Return a client of the engine on which a test runs containers, if it runs any."""
    if "gpu_engine" in request.fixturenames:
        gpu_engine: GpuEngine = request.getfixturevalue("gpu_engine")
        return gpu_engine.client
    needs_engine = request.node.get_closest_marker("docker") is not None
    engine: DockerClient | None = request.getfixturevalue("engine") if needs_engine else None
    return engine


def _remove_containers(client: DockerClient, pid: int) -> list[str]:
    """Remove the containers of a morocco process and return their names."""
    containers = client.containers.list(
        all=True, filters={"label": f"morocco={pid}"}, ignore_removed=True
    )
    for container in containers:
        container.remove(force=True)
    return [str(container.name) for container in containers]
