"""Ratios in words and in cells: `1.23x faster, half the GPU RAM`, `1.23 [1.20, 1.26]`."""

from __future__ import annotations

from morocco.report import Metric, ModelRatios, Ratio

_NOUNS: dict[Metric, str] = {
    "init_time": "init time",
    "gpu_ram": "GPU RAM",
    "ram": "RAM",
    "energy": "energy",
}
_WORDS = {"0.50": "half the", "1.00": "the same", "2.00": "twice the"}


def format_ratio(ratio: Ratio) -> str:
    """Return model / baseline with its interval, and whether it is noise."""
    known = ratio.low is not None or ratio.high is not None
    ends = f" [{_format(ratio.low)}, {_format(ratio.high)}]" if known else ""
    return f"{ratio.value:.2f}{ends}{_say_doubt(ratio)}"


def _format(end: float | None) -> str:
    return "no bound" if end is None else f"{end:.2f}"


def say_ratios(model: ModelRatios) -> str:
    """Return what a model comes to against the baseline, over all tasks; empty without a ratio."""
    texts = [say_ratio(metric, ratio) for metric, ratio in model.overall.items()]
    if model.same_machine is False:
        texts.append("but on another machine")
    return "; ".join(texts) and f"{model.model}: {'; '.join(texts)}."


def say_ratio(metric: Metric, ratio: Ratio) -> str:
    """Return a ratio in words, and whether it is noise."""
    words = _say_speed(ratio.value) if metric == "rps" else _say_amount(metric, ratio.value)
    return words + _say_doubt(ratio)


def _say_speed(ratio: float) -> str:
    factor = f"{max(ratio, 1 / ratio):.2f}"
    if factor == "1.00":
        return "as fast"
    return f"{factor}x {'faster' if ratio > 1 else 'slower'}"


def _say_amount(metric: Metric, ratio: float) -> str:
    text = f"{ratio:.2f}"
    return f"{_WORDS.get(text, f'{text}x the')} {_NOUNS[metric]}"


def _say_doubt(ratio: Ratio) -> str:
    if ratio.real is None:
        return " (too few runs)"
    return "" if ratio.real else " (noise)"
