"""Tables as organisations have them: ages, laboratory values and incomes in raw units, texts and holes.

    python -m benchmarks.federated.by_name [--seeds 5] [--rows 20000]

Writes benchmarks/results/federated_by_name.md.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.federated.masked import mean, write
from benchmarks.frame import Floats
from tacit.federated import FederatedLogisticRegression, Marginals, Party

EPSILON, DELTA, TESTED, RADIUS = 1.0, 1e-6, 50_000, 4.0
NUMBERS = {"a": ["age", "income"], "b": ["creatinine"]}
CONSTANTS = {"age": 50.0, "income": 25_000.0, "creatinine": 1.0}  # public: what a value is divided by
BOUNDS = {"age": [18, 95], "income": [0, 150_000], "creatinine": [0, 4]}
WARDS = {"north": 0.4, "east": 0.3, "south": 0.2, "west": 0.1}
PAGE = Path(__file__).parents[1] / "results" / "federated_by_name.md"

Tables = dict[str, pd.DataFrame]


def people(rows: int, seed: int) -> tuple[Tables, Floats, Floats]:
    """Two parties' tables with a tenth of the creatinine missing, labels, and the true margins."""
    rng = np.random.default_rng([seed, 31])
    age, log_income = rng.uniform(20, 90, rows), rng.standard_normal(rows)
    log_creatinine, ward = rng.standard_normal(rows), rng.choice(list(WARDS), rows, p=list(WARDS.values()))
    margins = (age - 55) / 20 + 0.8 * log_creatinine - 0.7 * log_income + 1.2 * (ward == "south") - 0.5
    y = np.where(rng.random(rows) < expit(margins), 1, 0)
    creatinine = np.exp(0.35 * log_creatinine)
    creatinine[rng.random(rows) < 0.1] = np.nan
    a = pd.DataFrame({"age": age, "income": 25_000.0 * np.exp(0.5 * log_income)})
    return {"a": a, "b": pd.DataFrame({"creatinine": creatinine, "ward": ward})}, y, margins


def ways() -> dict[str, Any]:
    """How a study may tell of columns: by place, in raw units or divided by constants; or by name."""
    found = {name: dict.fromkeys(columns, "number") for name, columns in NUMBERS.items()}
    declared = {name: {column: BOUNDS[column] for column in columns} for name, columns in NUMBERS.items()}
    return {
        "raw units, holes filled with 1": None,
        "divided by constants, holes filled with 1": CONSTANTS,
        "by name, scales found": found,
        "by name, bounds declared": declared,
        "by name, scales and wards found": found | {"b": found["b"] | {"ward": {"text": 6}}},
        "by name, bounds and wards declared": declared | {"b": declared["b"] | {"ward": list(WARDS)}},
    }


def blocks_of(tables: Tables, told: Any) -> list[Any]:
    """What a party takes part with, and what is predicted from."""
    if told is not None and set(told) == set(NUMBERS):
        return list(tables.values())
    filled = [tables[name][columns].fillna(1.0) for name, columns in NUMBERS.items()]
    return [(block / pd.Series(told)[block.columns] if told else block).to_numpy() for block in filled]


def judged(rows: int, seed: int, products: str) -> dict[str, float]:
    """AUC on other people of each way, and of the truth."""
    tables, y, margins = people(rows + TESTED, seed)
    train = {name: table.iloc[:rows] for name, table in tables.items()}
    test = {name: table.iloc[rows:] for name, table in tables.items()}
    held = products == "masked"
    scores = {"the truth": float(roc_auc_score(y[rows:], margins[rows:]))}
    for way, told in ways().items():
        named = told is not None and set(told) == set(NUMBERS)
        parties = [
            Party(block, None if held and name == "a" else y[:rows], name=name, columns=told[name] if named else None)
            for name, block in zip(NUMBERS, blocks_of(train, told), strict=True)
        ]
        model = FederatedLogisticRegression(
            EPSILON, DELTA, l1_radius=RADIUS, protocol=Marginals(products=products), classes=[0, 1],
            labels="held" if held else "shared", random_state=seed,
        ).fit(parties)  # fmt: skip
        scores[way] = float(roc_auc_score(y[rows:], model.decision_function(blocks_of(test, told))))
    return scores


def table(rows: int, seeds: int) -> list[str]:
    """AUC of all ways, of so many people."""
    found: dict[str, dict[str, list[float]]] = {"local": defaultdict(list), "masked": defaultdict(list)}
    for products, scores in found.items():
        for seed in range(seeds):
            for way, value in judged(rows, seed, products).items():
                scores[way].append(value)
    lines = [f"| {w} | {mean(found['local'][w])} | {mean(found['masked'][w])} |" for w in ["the truth", *ways()]]
    head = '| columns | `products="local"`, labels shared | `products="masked"`, labels held |'
    return [f"**{rows:,} people.**", "", head, "|---|---|---|", *lines, ""]


def page(sizes: list[int], seeds: int) -> str:
    """All tables."""
    return "\n".join(
        [
            "# Tables as organisations have them",
            "",
            f"`python -m benchmarks.federated.by_name`. Age and income at one party, creatinine (a tenth of it missing)"
            f" and the ward at another, logistic loss; epsilon = {EPSILON:g}, delta = {DELTA:g}, add-remove, l1 radius"
            f" {RADIUS:g}. AUC on {TESTED:,} other people, mean ± standard error over {seeds} seeds of data and noise."
            " The radius is the same number in all rows, and not the same ball: where columns go by name it is of"
            " columns with a size of about 1.",
            "",
            *(line for rows in sizes for line in table(rows, seeds)),
        ]
    )


if __name__ == "__main__":
    write(__doc__, [20_000], PAGE, page)
