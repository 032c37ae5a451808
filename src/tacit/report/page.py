"""A page that stands by itself: its frame, its style and its small pictures; nothing from outside and no script."""

import html
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")  # Okabe and Ito
_DARK = {"#0072b2", "#009e73", "#d55e00"}  # on these, writing is white


class Part(NamedTuple):
    """A part of a whole, for a picture."""

    name: str
    share: float
    colour: str


def page(title: str, body: str) -> str:
    """The whole file; its policy forbids the browser to load anything."""
    style = (resources.files(__package__) / "style.css").read_text(encoding="utf8")
    return _FRAME.replace("{title}", escaped(title)).replace("{style}", f"\n{style}").replace("{body}", body)


def escaped(text: object) -> str:
    """Text as HTML shows it."""
    return html.escape(str(text))


def number(value: float) -> str:
    """Four digits, with a sign that does not break."""
    return f"{value:.4g}".replace("-", "\u2212")


def section(name: str, heading: str, content: str) -> str:
    """A part of the page with an address of its own."""
    return f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{heading}</h2>\n{content}</section>\n'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, kind: str = "") -> str:
    """A table of cells that are HTML already; the first of a row names it."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )


def stacked_bar(parts: Sequence[Part], label: str) -> str:
    """Parts of a whole side by side, each with its name where there is room."""
    width, height, at = 1000.0, 56, 0.0
    total = sum(part.share for part in parts)
    pieces = []
    for part in parts:
        wide = width * part.share / total
        told = f"{part.name}: {part.share / total:.1%}"
        pieces.append(
            f'<rect x="{at:.2f}" y="0" width="{wide:.2f}" height="{height}" fill="{part.colour}">'
            f"<title>{escaped(told)}</title></rect>"
        )
        if wide > 11.5 * len(told):
            ink = "#fff" if part.colour in _DARK else "#111"
            pieces.append(
                f'<text x="{at + wide / 2:.2f}" y="{height / 2 + 6}" text-anchor="middle" fill="{ink}">'
                f"{escaped(told)}</text>"
            )
        at += wide
    return (
        f'<svg class="bar" viewBox="0 0 {width:g} {height}" role="img" aria-label="{escaped(label)}">'
        f"{''.join(pieces)}</svg>\n"
    )


def swatch(colour: str) -> str:
    """The key of a colour."""
    return f'<svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" fill="{colour}"/></svg> '


def interval(value: float, reach: float, largest: float) -> str:
    """A point with its reach to both sides, on an axis from -largest to largest."""
    middle, half = 100.0, 96.0

    def place(at: float) -> float:
        return middle + half * max(-1.0, min(1.0, at / largest)) if largest > 0 else middle

    kind = "faint" if abs(value) <= reach else "clear"
    return (
        f'<svg class="interval {kind}" viewBox="0 0 200 16" aria-hidden="true">'
        f'<path class="zero" d="M{middle:g} 0V16"/>'
        f'<path class="reach" d="M{place(value - reach):.1f} 8H{place(value + reach):.1f}"/>'
        f'<circle cx="{place(value):.1f}" cy="8" r="3.6"/></svg>'
    )


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""
