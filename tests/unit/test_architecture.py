"""What is shipped, and how the wings of the house depend on one another."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import morocco
from paths import ROOT

PACKAGE = ROOT / "morocco"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
MODULE_OF = {"nvidia-ml-py": "pynvml"}
STANDARD = {*sys.stdlib_module_names, "tomllib"}  # which is not in Python 3.10


def find_imports(module: str) -> Iterator[str]:
    """Yield what a module imports anywhere, types and late imports included."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            yield node.module


def find_calls(module: str) -> set[str]:
    """Return the functions that a module calls by name: `print`, `sys.exit`."""
    nodes = ast.walk(ast.parse(MODULES[module].read_text()))
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


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
    shipped = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    package = {name for name in names if name.startswith("morocco/")}
    assert package == shipped
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
    needed = {"pyproject.toml", "README.md", "morocco/py.typed", "tests/unit/test_architecture.py"}
    assert needed <= names
    assert any(name.startswith("examples/data/") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(".git/")]


def test_every_module_imports_without_a_warning() -> None:
    names = [module.removesuffix(".__init__") for module in MODULES if "__main__" not in module]
    command = [sys.executable, "-W", "error", "-c", f"import {', '.join(names)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_imports_keep_the_contracts_of_the_house() -> None:
    """The contracts are those of `[tool.importlinter]` in pyproject.toml."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as lint; lint()",
    ]
    done = subprocess.run(
        [*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


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
    if module != "morocco.__main__":
        assert "sys.exit" not in calls
    if module != "morocco.util.params":  # whose `print_text` makes everything printable
        assert "click.echo" not in calls
        prints = module == "morocco.__main__" or module.endswith(".command")
        assert prints or "print_text" not in calls


def test_the_page_about_the_house_names_every_room_and_no_other() -> None:
    page = (PACKAGE / "README.md").read_text()
    linked = set(re.findall(r"\]\(([\w/]+\.py)\)", page))
    named = set(re.findall(r"[\w/]+\.py", page))
    rooms = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert linked <= rooms
    assert {name for name in named if "/" in name} <= rooms
    unexplained = {"__init__.py", "__main__.py", "command.py", "render.py"}
    missing = {room for room in rooms if not {room, Path(room).name} & named}
    assert {Path(room).name for room in missing} <= unexplained
