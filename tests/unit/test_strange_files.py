"""Whatever strangers send: no traceback, nothing that acts on a terminal, no long wait."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from strange_files import Case, answers, plots, run_case, settings_files, submissions

SECONDS = 5
quietly = settings(suppress_health_check=list(HealthCheck))


def check_case(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for outcome in run_case(case, Path(folder)):
            assert outcome.fault is None, f"{outcome.words}: {outcome.fault}"
            assert outcome.seconds < SECONDS


@quietly
@given(submissions())
def test_no_zip_and_no_folder_ends_in_a_traceback(case: Case) -> None:
    check_case(case)


@quietly
@given(settings_files())
def test_no_file_of_settings_ends_in_a_traceback(case: Case) -> None:
    check_case(case)


@quietly
@given(answers())
def test_no_predictions_end_in_a_traceback(case: Case) -> None:
    check_case(case)


@settings(quietly, max_examples=5)
@given(plots())
def test_no_log_ends_a_plot_in_a_traceback(case: Case) -> None:
    check_case(case)
