"""The diagnostics of LiDiRus: the correlation over the records that carry a tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from morocco.answers import Pair
from morocco.metrics import matthews
from morocco.schemas import TAG_GROUPS


@dataclass(frozen=True)
class Part:
    """The correlation over a part of the records."""

    mcc: float | None
    """-1 to 1; None where there is no record."""
    labels: int
    """How many records it is taken over."""


@dataclass(frozen=True)
class Group:
    """A group of tags: lex_sem, pr_ar_str, logic or knowledge."""

    name: str
    whole: Part
    """Over the records with any tag of the group."""
    composite: Mapping[str, Part]
    """By all that a record says of the group, as it is written: "Double negation;Negation"."""
    atomic: Mapping[str, Part]
    """By each single tag, over all records that have it among others: "Negation"."""


def correlate(pairs: Sequence[Pair]) -> float:
    """Return the Matthews correlation, the metric of LiDiRus, -1 to 1."""
    gold, predicted = [pair.gold for pair in pairs], [pair.predicted for pair in pairs]
    return matthews(gold, predicted, "entailment")


def diagnose(pairs: Sequence[Pair]) -> tuple[Group, ...]:
    """Return the four groups; tags in alphabetical order."""
    return tuple(_diagnose_group(name, pairs) for name in TAG_GROUPS.values())


def _diagnose_group(name: str, pairs: Sequence[Pair]) -> Group:
    tagged = [(tags, pair) for pair in pairs for group, tags in pair.tags if group == name]
    composite: dict[str, list[Pair]] = {}
    atomic: dict[str, list[Pair]] = {}
    for tags, pair in tagged:
        composite.setdefault(";".join(tags), []).append(pair)
        for tag in set(tags):
            atomic.setdefault(tag, []).append(pair)
    whole = _measure([pair for _, pair in tagged])
    return Group(name, whole, _measure_all(composite), _measure_all(atomic))


def _measure_all(parts: Mapping[str, Sequence[Pair]]) -> dict[str, Part]:
    return {tag: _measure(parts[tag]) for tag in sorted(parts)}


def _measure(pairs: Sequence[Pair]) -> Part:
    return Part(correlate(pairs) if pairs else None, len(pairs))
