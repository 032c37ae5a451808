"""A page that stands by itself: its frame, its style and its small pictures; nothing from outside and no script."""

import html
from collections.abc import Sequence
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
    return _FRAME.replace("{title}", escaped(title)).replace("{style}", _STYLE).replace("{body}", body)


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

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --line: #d7dde5; --paper: #fff; --card: #f5f7fa;
  --accent: #0072b2; --alarm: #a33c00; --alarm-card: #fdf1e7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a3aebb; --line: #3a4452; --paper: #151a21;
  --card: #1e252e; --accent: #6cbcf0; --alarm: #ffb27a; --alarm-card: #33241a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto,
  "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: 1.1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .5rem 0; }
.soft, caption { color: var(--soft); }
.lead { font-size: 1.08rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .7rem; margin: 1.2rem 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .55rem .7rem; }
.facts dt { color: var(--soft); font-size: .82rem; }
.facts dd { margin: 0; font-size: 1.02rem; font-weight: 600; overflow-wrap: anywhere; }
.alarm { background: var(--alarm-card); border-left: .3rem solid var(--alarm); padding: .55rem .9rem; margin: .8rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .93rem; }
td { font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
thead th { color: var(--soft); font-weight: 600; font-size: .82rem; }
tbody th { font-weight: 500; overflow-wrap: anywhere; }
.numbers td { white-space: nowrap; }
.numbers tbody th { min-width: 7rem; }
.bar { display: block; width: 100%; height: auto; border-radius: .4rem; margin: .9rem 0; }
.bar text { font: 600 18px system-ui, "DejaVu Sans", sans-serif; }
.bar rect { stroke: var(--paper); stroke-width: 2; }
.key { width: .85rem; height: .85rem; border-radius: .15rem; vertical-align: -.08rem; }
.interval { width: 12.5rem; height: 1rem; display: block; }
.interval .zero { stroke: var(--line); stroke-width: 1.5; }
.interval .reach { stroke: var(--accent); stroke-width: 2.4; stroke-linecap: round; }
.interval circle { fill: var(--accent); }
.interval.faint .reach { stroke: var(--soft); }
.interval.faint circle { fill: var(--paper); stroke: var(--soft); stroke-width: 2; }
.scree { display: block; width: 100%; height: auto; margin: .9rem 0; border-bottom: 1px solid var(--line); }
.scree .clear { fill: var(--accent); }
.scree .faint { fill: var(--line); }
.scree .floor { stroke: var(--alarm); stroke-width: 1.5; stroke-dasharray: 6 5; }
.mark { color: var(--soft); font-size: .85rem; }
ul { padding-left: 1.2rem; margin: .3rem 0; }
li { margin: .25rem 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem;
  overflow-x: auto; font-size: .82rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
summary { cursor: pointer; font-weight: 600; }
@media print {
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  h2 { break-after: avoid; } tr, .facts div, .bar { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
