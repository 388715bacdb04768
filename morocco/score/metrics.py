"""The arithmetic of the metrics: pure functions from labels and texts to numbers.

Sums do not depend on the order of what is summed, to the last bit.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from morocco.score.answers import TAG_GROUPS, Pair

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Labels = Sequence[Hashable]


def mean(numbers: Sequence[float]) -> float:
    """Return the mean of at least one number."""
    return fsum(numbers) / len(numbers)


def accuracy(gold: Labels, predicted: Labels) -> float:
    """Return the share of right predictions, 0 to 1."""
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def f1(gold: Labels, predicted: Labels, positive: Hashable) -> float:
    """Return F1 of one label against the rest, 0 to 1: 2 TP / (2 TP + FP + FN).

    1 where neither gold nor predictions have the label: nothing to find, and nothing found.
    """
    both = sum(g == p == positive for g, p in zip(gold, predicted, strict=True))
    either = sum(g == positive for g in gold) + sum(p == positive for p in predicted)
    return 2 * both / either if either else 1.0


def macro_f1(gold: Labels, predicted: Labels) -> float:
    """Return the unweighted mean of the one-vs-rest F1s of all labels that occur, 0 to 1.

    A prediction of None has no label.
    """
    labels = {*gold, *predicted} - {None}
    return mean([f1(gold, predicted, label) for label in labels])


def matthews(gold: Labels, predicted: Labels, positive: Hashable) -> float:
    """Return the Matthews correlation of two labels, -1 to 1 (Matthews 1975).

    (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)); 0, as in scikit-learn, where all
    of gold or all predictions have the same label.
    """
    pairs = Counter((g == positive, p == positive) for g, p in zip(gold, predicted, strict=True))
    tp, fn = pairs[True, True], pairs[True, False]
    fp, tn = pairs[False, True], pairs[False, False]
    square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / sqrt(square) if square else 0.0


def exact_match(groups: Iterable[Hashable], right: Iterable[bool]) -> float:
    """Return the share of groups in which every member is right, 0 to 1."""
    exact: dict[Hashable, bool] = {}
    for group, good in zip(groups, right, strict=True):
        exact[group] = exact.get(group, True) and good
    return sum(exact.values()) / len(exact)


def normalise(text: str) -> str:
    """Return a text as RuCoS compares it: lower case, no ASCII punctuation, single spaces.

    This is the normalisation of SQuAD 1.1 without its English articles; « » and — stay.
    """
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())


def match_text(predicted: str | None, answers: Iterable[str]) -> tuple[float, float]:
    """Return the best F1 and the best exact match of a text with any of the answers, each 0 to 1.

    F1 compares the words as multisets, as in SQuAD 1.1 and ReCoRD. Equal texts have an F1 of 1
    even if they are all punctuation. No prediction scores 0.
    """
    if predicted is None:
        return 0.0, 0.0
    words = normalise(predicted).split()
    golds = [normalise(answer).split() for answer in answers]
    return max(_words_f1(words, gold) for gold in golds), float(words in golds)


def _words_f1(predicted: list[str], gold: list[str]) -> float:
    if predicted == gold:
        return 1.0
    common = (Counter(predicted) & Counter(gold)).total()
    return 2 * common / (len(predicted) + len(gold))


@dataclass(frozen=True)
class Part:
    """The correlation over some of the records."""

    mcc: float | None
    """-1 to 1; None without records."""
    labels: int
    """Number of these records."""


@dataclass(frozen=True)
class TagGroup:
    """A group of tags: lex_sem, pr_ar_str, logic or knowledge."""

    name: str
    whole: Part
    """Over the records with any tag of the group."""
    composite: Mapping[str, Part]
    """By all tags that a record has of the group, as written: "Double negation;Negation"."""
    atomic: Mapping[str, Part]
    """By single tag, over all records that have it, alone or not: "Negation"."""


def correlate(pairs: Sequence[Pair]) -> float:
    """Return the Matthews correlation, the metric of LiDiRus, -1 to 1."""
    gold, predicted = [pair.gold for pair in pairs], [pair.predicted for pair in pairs]
    return matthews(gold, predicted, "entailment")


def diagnose(pairs: Sequence[Pair]) -> tuple[TagGroup, ...]:
    """Return the correlations of the four groups, each by tag in alphabetical order."""
    return tuple(_diagnose_group(name, pairs) for name in TAG_GROUPS.values())


def _diagnose_group(name: str, pairs: Sequence[Pair]) -> TagGroup:
    tagged: list[Pair] = []
    composite: dict[str, list[Pair]] = {}
    atomic: dict[str, list[Pair]] = {}
    for pair in pairs:
        for tags in (tags for group, tags in pair.tags if group == name):
            tagged.append(pair)
            composite.setdefault(";".join(tags), []).append(pair)
            for tag in set(tags):
                atomic.setdefault(tag, []).append(pair)
    return TagGroup(
        name,
        _correlate_part(tagged),
        {tag: _correlate_part(composite[tag]) for tag in sorted(composite)},
        {tag: _correlate_part(atomic[tag]) for tag in sorted(atomic)},
    )


def _correlate_part(pairs: Sequence[Pair]) -> Part:
    return Part(correlate(pairs) if pairs else None, len(pairs))
