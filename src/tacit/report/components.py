"""The components of a PCA in a report: a scree plot, and which of them stand above the noise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.report.page import escaped, number, table

MOST_BARS = 60  # components drawn, and listed


def components(model: Any) -> str:
    """The scree plot and its table, from released numbers alone."""
    variance, floor = np.asarray(model.explained_variance_), float(model.noise_floor_)
    clear = np.asarray(model.reliability_) > 0.0
    clear &= ~np.isnan(variance)
    told = f"{int(clear.sum()):,} of {len(variance):,} components stand above the noise."
    text = (
        f"<p><strong>{told}</strong> A component that does not may be a direction of noise alone, and its variance is"
        " not known. Variances are those of the bounded rows, in the squared units of the data, cleared of what noise"
        " adds; reliability estimates the squared cosine with the component that would have been found without noise."
        f" Rows were clipped to norm {number(float(model.radius_))}"
        f"{' about the mean' if model.center else ''}.</p>\n"
    )
    rows = [
        [
            f"{place + 1}",
            number(variance[place]) if not np.isnan(variance[place]) else "not known",
            f"{model.explained_variance_ratio_[place]:.1%}" if not np.isnan(variance[place]) else "",
            f"{model.reliability_[place]:.2f}",
            "" if clear[place] else '<span class="mark">could be noise</span>',
        ]
        for place in range(min(len(variance), MOST_BARS))
    ]
    caption = f"Noise alone shows variances up to {number(floor)}." if floor > 0.0 else "There is no noise."
    if len(variance) > MOST_BARS:
        caption += f" The first {MOST_BARS} of {len(variance):,} are shown; the model holds the others."
    head = ("component", "variance", "part of the total", "reliability", "")
    return text + _scree(variance[:MOST_BARS], clear[:MOST_BARS], floor, told) + table(head, rows, caption, "numbers")


def _scree(variance: Floats, clear: NDArray[np.bool_], floor: float, label: str) -> str:
    """A bar for each component, up to its variance, and a line where the noise ends."""
    wide, high = 1000.0, 180.0
    heights = np.nan_to_num(variance, nan=0.0)
    top = max(float(heights.max(initial=0.0)), floor) or 1.0
    step = wide / len(heights)
    bars = "".join(
        f'<rect class="{"clear" if clear[place] else "faint"}" x="{place * step + 0.1 * step:.1f}"'
        f' y="{high * (1.0 - height / top):.1f}" width="{0.8 * step:.1f}" height="{high * height / top:.1f}">'
        f"<title>{escaped(f'component {place + 1}: {number(height)}')}</title></rect>"
        for place, height in enumerate(heights)
        if not np.isnan(variance[place])
    )
    at = high * (1.0 - floor / top)
    line = f'<path class="floor" d="M0 {at:.1f}H{wide:g}"/>' if floor > 0.0 else ""
    return (
        f'<svg class="scree" viewBox="0 0 {wide:g} {high:g}" role="img" aria-label="{escaped(f"Scree plot. {label}")}">'
        f"{bars}{line}</svg>\n"
    )
