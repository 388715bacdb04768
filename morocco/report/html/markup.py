"""HTML that is well formed and escaped because nothing else can be built."""

from __future__ import annotations

from html import escape

from morocco.charts.style import make_printable


class Html(str):
    """Text that is HTML already; any other text is escaped where it is put into an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """Return `<name attributes>children</name>`; attributes that are None are left out.

    `class_` stands for class, and other underscores for hyphens.
    """
    inner = "".join(map(to_html, children))
    return Html(f"<{name}{_join(attributes)}>{inner}</{name}>")


def void(name: str, /, **attributes: str | float | None) -> Html:
    """Return an element that has no content, such as `meta`."""
    return Html(f"<{name}{_join(attributes)}>")


def to_html(text: str) -> Html:
    """Return a text escaped, and HTML as it is."""
    return text if isinstance(text, Html) else Html(escape(make_printable(text)))


def join(*parts: str) -> Html:
    """Return one text of several."""
    return Html("".join(map(to_html, parts)))


def _join(attributes: dict[str, str | float | None]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(make_printable(str(value)))}"'
        for name, value in attributes.items()
        if value is not None
    )
