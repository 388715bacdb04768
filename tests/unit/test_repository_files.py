"""The files that other tools read: each is valid by the schema of its tool."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import editorconfig
import pytest

from paths import ROOT

EDITORCONFIG_VALUES = {
    "charset": {"utf-8"},
    "end_of_line": {"lf"},
    "indent_style": {"space", "tab"},
    "insert_final_newline": {"true"},
    "trim_trailing_whitespace": {"true"},
}
NUMBERS = {"indent_size", "tab_width", "max_line_length"}


def run_tool(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        (
            "check_jsonschema",
            "--builtin-schema",
            "vendor.github-workflows",
            ".github/workflows/ci.yml",
        ),
        ("pre_commit", "validate-config", ".pre-commit-config.yaml"),
        ("validate_pyproject", "pyproject.toml"),
    ],
    ids=lambda command: command[-1],
)
def test_a_file_is_valid_by_the_schema_of_its_tool(command: Sequence[str]) -> None:
    run_tool(*command)


@pytest.mark.parametrize("name", ["morocco/cli.py", "Makefile", "pyproject.toml", ".ci/run"])
def test_the_editor_settings_are_known_properties_with_known_values(name: str) -> None:
    settings = editorconfig.get_properties(str(ROOT / name))
    assert settings["indent_style"] == ("tab" if name == "Makefile" else "space")
    for key, value in settings.items():
        if key in NUMBERS:
            assert value == "tab" or value.isdigit()
        else:
            assert value in EDITORCONFIG_VALUES[key]


def test_the_workflow_does_what_ci_does_here() -> None:
    assert "bash .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
