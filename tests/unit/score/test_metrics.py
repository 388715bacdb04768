"""The arithmetic of the metrics, compared with scikit-learn and checked for its own properties."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from morocco.score.metrics import (
    accuracy,
    exact_match,
    f1,
    macro_f1,
    match_text,
    matthews,
    mean,
    normalise,
)

THREE = ("neutral", "entailment", "contradiction")
TWO = ("entailment", "not_entailment")

Columns = tuple[list[str], list[str]]


def columns(labels: Sequence[str]) -> st.SearchStrategy[Columns]:
    """Draw gold labels and as many predictions."""
    pairs = st.lists(st.tuples(st.sampled_from(labels), st.sampled_from(labels)), min_size=1)
    return pairs.map(lambda rows: ([g for g, _ in rows], [p for _, p in rows]))


def correlation_of(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of columns with one label
        return float(matthews_corrcoef(gold, predicted))


# Against scikit-learn


@given(columns(THREE))
def test_accuracy_is_that_of_scikit_learn(drawn: Columns) -> None:
    assert accuracy(*drawn) == pytest.approx(accuracy_score(*drawn))


@given(columns(THREE))
def test_macro_f1_is_that_of_scikit_learn(drawn: Columns) -> None:
    expected = f1_score(*drawn, average="macro", zero_division=0)
    assert macro_f1(*drawn) == pytest.approx(expected)


@given(columns(TWO))
def test_f1_of_a_label_is_that_of_scikit_learn(drawn: Columns) -> None:
    expected = f1_score(*drawn, labels=[TWO[0]], average="macro", zero_division=1.0)
    assert f1(*drawn, positive=TWO[0]) == pytest.approx(expected)


@given(columns(TWO))
def test_the_correlation_is_that_of_scikit_learn(drawn: Columns) -> None:
    assert matthews(*drawn, positive=TWO[0]) == pytest.approx(correlation_of(*drawn))


@given(columns(TWO), st.integers(1, 50))
def test_repeating_all_pairs_does_not_change_the_correlation(drawn: Columns, times: int) -> None:
    gold, predicted = drawn
    many = matthews(gold * times, predicted * times, TWO[0])
    assert many == pytest.approx(matthews(gold, predicted, TWO[0]))


# Its own properties


@given(columns(TWO))
def test_the_correlation_is_the_same_for_either_positive_label(drawn: Columns) -> None:
    assert matthews(*drawn, positive=TWO[0]) == matthews(*drawn, positive=TWO[1])


@given(columns(TWO))
def test_opposite_predictions_flip_the_sign_of_the_correlation(drawn: Columns) -> None:
    gold, predicted = drawn
    opposite = [TWO[label == TWO[0]] for label in predicted]
    assert matthews(gold, opposite, TWO[0]) == -matthews(gold, predicted, TWO[0])


@pytest.mark.parametrize("predicted", [["a", "a"], ["b", "b"]])
def test_a_correlation_with_a_constant_is_0(predicted: list[str]) -> None:
    assert matthews(["a", "b"], predicted, "a") == 0
    assert matthews(predicted, ["a", "b"], "a") == 0
    assert matthews(predicted, predicted, "a") == 0


@given(columns(THREE))
def test_perfect_predictions_score_1_to_the_last_bit(drawn: Columns) -> None:
    gold, _ = drawn
    assert accuracy(gold, gold) == 1
    assert macro_f1(gold, gold) == 1
    assert f1(gold, gold, THREE[0]) == 1
    assert matthews(gold, gold, THREE[0]) == (1 if 0 < gold.count(THREE[0]) < len(gold) else 0)


@given(columns(THREE))
def test_scores_are_within_their_range(drawn: Columns) -> None:
    assert 0 <= accuracy(*drawn) <= 1
    assert 0 <= macro_f1(*drawn) <= 1
    assert 0 <= f1(*drawn, positive=THREE[0]) <= 1
    assert -1 <= matthews(*drawn, positive=THREE[0]) <= 1


@given(columns(THREE), st.randoms(use_true_random=False))
def test_order_does_not_change_a_score_in_the_last_bit(drawn: Columns, chance: Random) -> None:
    rows = list(zip(*drawn, strict=True))
    chance.shuffle(rows)
    shuffled = ([g for g, _ in rows], [p for _, p in rows])
    assert accuracy(*shuffled) == accuracy(*drawn)
    assert macro_f1(*shuffled) == macro_f1(*drawn)
    assert matthews(*shuffled, positive=THREE[0]) == matthews(*drawn, positive=THREE[0])


@given(st.lists(st.floats(0, 1), min_size=1), st.randoms(use_true_random=False))
def test_order_does_not_change_a_mean_in_the_last_bit(numbers: list[float], chance: Random) -> None:
    before = mean(numbers)
    chance.shuffle(numbers)
    assert mean(numbers) == before
    assert 0 <= before <= 1


def test_a_missing_prediction_lowers_the_recall_of_its_label_only() -> None:
    gold: list[str | None] = ["neutral", "neutral", "entailment"]
    predicted = ["neutral", None, "entailment"]
    assert macro_f1(gold, predicted) == pytest.approx((2 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("right", "share"),
    [([True, True, True], 1), ([True, False, True], 0.5), ([False, True, False], 0)],
)
def test_one_wrong_answer_spoils_its_question(right: list[bool], share: float) -> None:
    assert exact_match(["a", "a", "b"], right) == share


# Texts


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Владимир\tПутин\n", "владимир путин"),
        ("США,", "сша"),
        ("Санкт-Петербург", "санктпетербург"),
        ("«Высота»", "«высота»"),
        ("Москва — Казань", "москва — казань"),
        ("The Beatles", "the beatles"),
        ("Ту\u00a0154", "ту 154"),
        ("...", ""),
    ],
)
def test_a_text_is_normalised_as_rucos_does(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("predicted", "answers", "scores"),
    [
        ("Путин", ["Владимир Путин", "Путин"], (1, 1)),
        ("путин!", ["Путин"], (1, 1)),
        ("Владимир Путин", ["Путин"], (2 / 3, 0)),
        ("Путин", ["Медведев"], (0, 0)),
        ("да да нет", ["да"], (0.5, 0)),
        ("да", ["да да"], (2 / 3, 0)),
        ("", ["Путин"], (0, 0)),
        ("-", ["!"], (1, 1)),
        (None, ["-"], (0, 0)),
    ],
)
def test_the_best_answer_counts(
    predicted: str | None, answers: list[str], scores: tuple[float, float]
) -> None:
    assert match_text(predicted, answers) == pytest.approx(scores)


@given(st.text(), st.lists(st.text(), min_size=1))
def test_texts_score_within_their_range(predicted: str, answers: list[str]) -> None:
    words, exact = match_text(predicted, answers)
    assert 0 <= words <= 1
    assert exact in (0, 1)
    assert words >= exact


@given(st.text(), st.lists(st.text()))
def test_an_answer_among_the_answers_scores_1(answer: str, others: list[str]) -> None:
    assert match_text(answer, [*others, answer]) == (1, 1)
