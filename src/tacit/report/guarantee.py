"""What a guarantee says, in words for those who know no formulas, and how it can be checked."""

import math
import platform
from collections.abc import Iterable
from importlib import metadata

from scipy.special import expit, ndtr

from tacit import __version__
from tacit.privacy import Guarantee, UnsupportedEventError
from tacit.privacy.guarantee import at_most
from tacit.report.page import escaped, number

_RECIPE = """from tacit.privacy import Guarantee

guarantee = Guarantee.from_json(open("guarantee.json").read())  # the text below
print(guarantee)
print(guarantee.recompute())  # at most the epsilon stated, from the noise alone"""


def in_words(guarantee: Guarantee) -> str:
    """What it promises, as HTML."""
    facts = {
        "epsilon": "infinite" if math.isinf(guarantee.epsilon) else f"{guarantee.epsilon:g}",
        "delta": at_most(guarantee.delta),
        "neighbours": guarantee.adjacency,
        "protected unit": "one row",
        "rows (public)": f"{guarantee.n_rows:,}",
        "solver": guarantee.solver,
    }
    cards = "".join(f"<div><dt>{name}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts.items())
    text = [f'<p class="lead">{_sentence(guarantee)}</p>']
    if math.isfinite(guarantee.epsilon):
        text.append(f"<p>{_attack(guarantee)}</p>")
        text.append(
            "<p>This holds whatever else anyone knows, now or later, and for everything computed from the model: its"
            " predictions on new rows, this report. Someone with several rows is protected less: with k rows, epsilon"
            " is up to k times as large, and delta grows too.</p>"
        )
    text += [f'<p class="alarm">{warning}</p>' for warning in _warnings(guarantee)]
    return f'<dl class="facts">{cards}</dl>\n' + "\n".join(text) + "\n"


def _sentence(guarantee: Guarantee) -> str:
    if math.isinf(guarantee.epsilon):
        return "Nothing: epsilon is infinite, and the model was fitted without noise."
    change = "been left out" if guarantee.adjacency == "add-remove" else "held anything else"
    return (
        "Whatever anyone concludes from this model, they would have concluded with nearly the same probability had any"
        f" one row {change}: the probabilities differ by a factor of at most e<sup>epsilon</sup> ="
        f" {number(math.exp(min(guarantee.epsilon, 700.0)))}, plus delta = {at_most(guarantee.delta)}."
    )


def _attack(guarantee: Guarantee) -> str:
    """The best guess between two neighbours: (e^epsilon + delta) / (e^epsilon + 1) is right, or Phi(mu / 2)."""
    share = expit(guarantee.epsilon) + guarantee.delta * expit(-guarantee.epsilon)
    what = (
        "whether one given row was among them"
        if guarantee.adjacency == "add-remove"
        else "which of two given rows was among them"
    )
    text = (
        f"Someone who knows all other rows and has to guess {what} is right at most {percent(share)} of the time;"
        " tossing a coin is right 50%."
    )
    try:
        mu = guarantee.mu
    except UnsupportedEventError:
        return text
    return text + (
        f" All noise here is Gaussian, so the exact limit is known: the fit is mu-GDP with mu = {mu:.3g}, and the guess"
        f" is right at most {percent(float(ndtr(mu / 2)))} of the time."
    )


def _warnings(guarantee: Guarantee) -> Iterable[str]:
    if guarantee.seeded:
        yield (
            "The noise was drawn from a fixed <code>random_state</code>. Whoever knows that number can take the noise"
            " off again: the guarantee holds only against those who do not."
        )
    if guarantee.delta >= 1 / guarantee.n_rows:
        yield "delta is not below one over the number of rows, so it would allow publishing one row outright."
    if 10 < guarantee.epsilon < math.inf:
        yield f"epsilon = {guarantee.epsilon:g} is large: the factor above allows nearly any conclusion about a person."


def check(guarantee: Guarantee) -> str:
    """How to recompute it, as HTML with the guarantee itself."""
    versions = {name: metadata.version(name) for name in ("numpy", "scikit-learn", "dp-accounting")}
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    at = f", at delta - d0 = {guarantee.delta_of_event!r}" if guarantee.d0 > 0.0 else ""
    return (
        "<p>The guarantee follows from the releases listed above, which are stored with it as one event of the"
        f" <code>dp_accounting</code> library. Any accountant for such events can recompute its epsilon{at}:</p>\n"
        f"<pre><code>{escaped(_RECIPE)}</code></pre>\n"
        f'<details><summary>The guarantee as JSON</summary><pre id="guarantee-json">{escaped(guarantee.to_json())}'
        "</pre></details>\n"
        f'<p class="soft">Made by tacit {__version__} with Python {platform.python_version()}, {told}.</p>\n'
    )


def percent(share: float) -> str:
    """Rounded up to a tenth, for a limit stays a limit."""
    return f"{min(math.ceil(share * 1000 - 1e-9), 1000) / 10:.1f}%"
