"""What all pictures of matplotlib share: ink, style, and bytes that are the same every time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GREY, RULE, GRID = "#222222", "#666666", "#b0b0b0", "#ececec"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Those of Okabe and Ito, which the colour-blind tell apart."""
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": RULE,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": GRID,
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "morocco",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": RULE,
    "xtick.labelcolor": GREY,
    "ytick.color": RULE,
    "ytick.labelcolor": GREY,
}
_NO_DATE: dict[str, dict[str, Any]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def save(draw: Callable[[], Figure], suffix: str, **style: Any) -> bytes:
    """Return what `draw` draws as an image; `suffix` is `.png`, `.svg` or `.pdf`."""
    file = BytesIO()
    with use_style(**style), warnings.catch_warnings():
        # The font has no Chinese: a title in boxes is better than a warning a letter.
        warnings.filterwarnings("ignore", "Glyph")
        draw().savefig(file, format=suffix[1:], metadata=_NO_DATE[suffix])
    return file.getvalue()


@contextmanager
def use_style(**style: Any) -> Iterator[None]:
    """Draw as morocco does, whatever matplotlibrc the user has, until the context ends."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE | style)
        yield


def measure_text(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a line of text in points, as `save` draws it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def make_printable(text: str) -> str:
    """Return a name with a ? for each letter that no font has, as in bytes that are no text."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
