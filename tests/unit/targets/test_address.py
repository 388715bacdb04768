"""Which engine is used, from made-up folders and variables."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from morocco.errors import EngineError
from morocco.targets.address import find_address
from morocco.targets.engine import connect

OWN = f"run/user/{os.getuid()}/podman/podman.sock"
OF_ROOT = "run/podman/podman.sock"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which Docker has the contexts `box` (a socket) and `far` (with certificates)."""
    folder = tmp_path / "home" / ".docker"
    make_context(folder, "box", "unix:///box.sock")
    make_context(folder, "far", "tcp://127.0.0.1:2376")
    (folder / "contexts" / "tls" / key("far") / "docker").mkdir(parents=True)
    return tmp_path / "home"


def make_context(folder: Path, name: str, host: str) -> None:
    meta = folder / "contexts" / "meta" / key(name) / "meta.json"
    meta.parent.mkdir(parents=True)
    endpoints = {"docker": {"Host": host, "SkipTLSVerify": False}}
    meta.write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoints}))


def key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def choose(home: Path, name: str) -> None:
    """Make a context the current one, as `docker context use` does."""
    (home / ".docker" / "config.json").write_text(json.dumps({"currentContext": name}))


def find(home: Path, *sockets: str, **env: str) -> tuple[str, str]:
    """Return address and origin on a machine with these sockets."""
    root = home.parent / "root"
    for socket in sockets:
        (root / socket).parent.mkdir(parents=True, exist_ok=True)
        (root / socket).touch()
    address = find_address({"HOME": str(home), **env}, root)
    return address.url, address.origin


def test_the_variable_of_docker_comes_first(home: Path) -> None:
    choose(home, "box")
    env = {"DOCKER_HOST": "unix:///a", "DOCKER_CONTEXT": "far", "CONTAINER_HOST": "unix:///b"}
    assert find(home, **env) == ("unix:///a", "DOCKER_HOST")


def test_the_context_comes_second(home: Path) -> None:
    choose(home, "box")
    env = {"DOCKER_HOST": "", "CONTAINER_HOST": "unix:///b"}
    assert find(home, **env) == ("unix:///box.sock", "Docker context box")
    found = find(home, DOCKER_CONTEXT="far", **env)
    assert found == ("tcp://127.0.0.1:2376", "Docker context far")


def test_the_context_is_read_where_docker_keeps_its_configuration(
    home: Path, tmp_path: Path
) -> None:
    make_context(tmp_path / "config", "box", "unix:///other.sock")
    (tmp_path / "config" / "config.json").write_text('{"currentContext": "box"}')
    url, _ = find(home, DOCKER_CONFIG=str(tmp_path / "config"))
    assert url == "unix:///other.sock"


def test_the_default_context_is_the_socket_of_docker(home: Path) -> None:
    choose(home, "box")
    env = {"DOCKER_CONTEXT": "default", "CONTAINER_HOST": "unix:///b"}
    assert find(home, OF_ROOT, **env) == ("unix:///var/run/docker.sock", "Docker context default")


def test_only_a_context_with_certificates_has_tls(home: Path) -> None:
    env = {"HOME": str(home)}
    assert find_address(env | {"DOCKER_CONTEXT": "far"}).tls
    assert not find_address(env | {"DOCKER_CONTEXT": "box"}).tls


def test_the_variable_of_podman_comes_third(home: Path) -> None:
    found = find(home, "var/run/docker.sock", CONTAINER_HOST="unix:///b")
    assert found == ("unix:///b", "CONTAINER_HOST")


def test_the_socket_of_docker_comes_before_that_of_podman(home: Path) -> None:
    found = find(home, "var/run/docker.sock", OWN, OF_ROOT)
    assert found == ("unix:///var/run/docker.sock", "the default")


def test_without_any_socket_that_of_docker_is_named(home: Path) -> None:
    assert find(home) == ("unix:///var/run/docker.sock", "the default")


def test_the_sockets_of_podman_are_found_where_docker_has_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find(home, OF_ROOT) == (f"unix:///{OF_ROOT}", "the default of Podman")
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    own = "run/user/1234/podman/podman.sock"
    assert find(home, OF_ROOT, own) == (f"unix:///{own}", "the default of Podman")
    found, _ = find(home, "tmp/mine/podman/podman.sock", XDG_RUNTIME_DIR="/tmp/mine")
    assert found == "unix:///tmp/mine/podman/podman.sock"


@pytest.mark.parametrize("content", ["{}", '{"Endpoints": {"kubernetes": {}}}', '{"Endpoints": 7}'])
def test_a_context_without_an_engine_is_told(content: str, home: Path) -> None:
    (home / ".docker" / "contexts" / "meta" / key("box") / "meta.json").write_text(content)
    with pytest.raises(EngineError, match=r"no address .* Docker context box .*context ls"):
        find(home, DOCKER_CONTEXT="box")


def test_a_context_that_is_not_there_is_told(home: Path) -> None:
    choose(home, "lost")
    with pytest.raises(EngineError, match="Docker context lost"):
        find(home)


def test_files_that_are_no_json_are_told(home: Path) -> None:
    (home / ".docker" / "config.json").write_text("{")
    with pytest.raises(EngineError, match=r"Docker's configuration in .*config.json: not JSON"):
        find(home)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"CONTAINER_HOST": "ssh://me@far.example"}, "ssh://me@far.example (CONTAINER_HOST)"),
        ({"DOCKER_CONTEXT": "far"}, "tcp://127.0.0.1:2376 (Docker context far)"),
    ],
)
def test_an_engine_elsewhere_is_told_with_what_named_it(
    env: dict[str, str], told: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST"):
        monkeypatch.setenv(name, env.get(name, ""))
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(EngineError, match=f"{re.escape(told)} runs on another machine"):
        connect()
