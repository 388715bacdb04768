"""What is shipped, and how the rooms of the house depend on one another."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import morocco

ROOT = Path(__file__).parents[1]
MODULES = {path.stem: path for path in sorted((ROOT / "morocco").glob("*.py"))}
SOLE_USERS = {
    "click": {"__main__", "cli", "params"},
    "distributed": {"cluster", "cluster_lane", "worker"},
    "docker": {"container", "engine", "leftovers"},
    "matplotlib": {"canvas", "discs_figure", "discs_label", "discs_legend", "figure", "plot"},
    "pandas": {"figure", "frames"},
    "psutil": {"host"},
    "pynvml": {"nvml"},
    "rich": {"board", "live"},
    "zipfile": {"archive", "entries", "pack"},
}
MODULE_OF = {"nvidia-ml-py": "pynvml"}
LIGHT = (
    "stats",
    "collect",
    "tables",
    "tasks",
    "check",
    "profile",
    "report_text",
    "report_build",
    "report_layout",
    "report_data",
    "pack",
    "score",
    "score_text",
)
"""Rooms that need nothing outside the standard library, whatever they import in turn."""
STANDARD = {*sys.stdlib_module_names, "tomllib"}  # which is not in Python 3.10
BACKPORTS = {"tomli"}
"""What later Pythons have in their standard library."""


def parse(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def find_imports(module: str) -> Iterator[str]:
    """Yield what a module imports anywhere, types and late imports included: `morocco.logs`."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            yield node.module


def inner_imports(module: str) -> set[str]:
    names = (name.partition(".") for name in find_imports(module))
    return {inner for package, _, inner in names if package == "morocco" and inner}


def reachable(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        module = waiting.pop()
        waiting += inner_imports(module) - found
        found.add(module)
    return found


def find_calls(module: str) -> set[str]:
    """Return the functions that a module calls by name: `print`, `sys.exit`."""
    calls = (node for node in ast.walk(parse(module)) if isinstance(node, ast.Call))
    return {ast.unparse(call.func) for call in calls}


def users_of(package: str) -> set[str]:
    return {
        module
        for module in MODULES
        if any(name.partition(".")[0] == package for name in find_imports(module))
    }


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a source archive and of the wheel that was built from it."""
    for needed in ("build", "hatchling"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"morocco-{morocco.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in names if name.startswith("morocco/")}
    assert package == {f"morocco/{path.name}" for path in MODULES.values()} | {"morocco/py.typed"}
    assert {name.split("/")[0] for name in names - package} == {
        f"morocco-{morocco.__version__}.dist-info"
    }


def test_the_wheel_runs(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    program = (
        "import morocco, sys; print(morocco.__file__); from morocco.__main__ import run; run()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        env={"PYTHONPATH": str(wheel)},
        cwd=dist,
        capture_output=True,
        text=True,
        check=True,
    )
    place, version = ran.stdout.splitlines()
    assert place.startswith(str(wheel))
    assert version == f"morocco {morocco.__version__}"


def test_the_source_archive_holds_what_is_needed_to_test_it(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"pyproject.toml", "README.md", "morocco/py.typed", "tests/test_package.py"} <= names
    assert any(name.startswith("examples/data/") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(".git/")]


def test_every_module_imports_without_a_warning() -> None:
    names = [f"morocco.{module}" for module in MODULES if not module.startswith("__")]
    command = [sys.executable, "-W", "error", "-c", f"import {', '.join(names)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_imports_point_one_way() -> None:
    graph = {module: inner_imports(module) for module in MODULES}
    order = list(TopologicalSorter(graph).static_order())  # raises where there is a circle
    assert set(MODULES) - {"__init__"} <= set(order)


@pytest.mark.parametrize("package", SOLE_USERS)
def test_an_outside_system_is_reached_through_its_own_rooms_only(package: str) -> None:
    assert users_of(package) <= SOLE_USERS[package]


@pytest.mark.parametrize("module", LIGHT)
def test_light_rooms_need_nothing_outside_the_standard_library(module: str) -> None:
    packages = {
        name.partition(".")[0] for needed in reachable(module) for name in find_imports(needed)
    }
    assert packages <= {"morocco", *BACKPORTS, *STANDARD}


def test_the_dependencies_are_what_is_imported() -> None:
    imported = {name.partition(".")[0] for module in MODULES for name in find_imports(module)}
    outside = imported - {"morocco", "requests", *STANDARD}  # requests: by docker
    lines = metadata.requires("morocco") or []
    required = [line for line in lines if not re.search("extra == '(dev|examples)'", line)]
    names = {re.split(r"[^\w-]", line)[0] for line in required}
    assert {MODULE_OF.get(name, name) for name in names} == outside


@pytest.mark.parametrize("module", MODULES)
def test_only_the_main_module_exits_and_only_the_commands_print(module: str) -> None:
    calls = find_calls(module)
    assert not calls & {"exit", "print", "quit", "os._exit"}
    if module != "__main__":
        assert "sys.exit" not in calls
    if module not in ("__main__", "cli"):
        assert "click.echo" not in calls
