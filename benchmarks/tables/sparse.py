"""AUC on adult's raw file, encoded by scikit-learn as sparse rows: `python -m benchmarks.tables.sparse FILE`.

The rows as a table, as the same table in an array, and as text, bounded by one norm for all columns. Categories are all
those of the file, which is not private: what is measured is what becomes of sparse rows.
"""

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

from tacit import LogisticRegression

PAGE = Path(__file__).parents[1] / "results" / "sparse_table.md"
EPSILONS = (0.1, 1.0, 10.0)
SEEDS = 5
FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sparse rows": (lambda rows: rows, {}),
    "an array": (lambda rows: rows.toarray(), {}),
    'sparse rows, `solver="text"`': (lambda rows: rows, {"solver": "text"}),
}


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    frame = pd.read_csv(parser.parse_args().file)
    y = frame.pop("income").to_numpy()
    texts = [name for name in frame if frame[name].dtype.kind not in "if"]
    encoder = make_column_transformer((OneHotEncoder(), texts), remainder="passthrough", sparse_threshold=1.0)
    rows = encoder.fit_transform(frame).tocsr()
    warnings.simplefilter("ignore")
    lines = ["| rows | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |", "|---" * 4 + "|"]
    for form, (store, options) in FORMS.items():
        cells = []
        for epsilon in EPSILONS:
            found = []
            for seed in range(SEEDS):
                train, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
                model = LogisticRegression(epsilon=epsilon, random_state=seed, **options)
                model.fit(store(rows[train]), y[train])
                found.append(roc_auc_score(y[test], model.decision_function(store(rows[test]))))
            cells.append(f"{np.mean(found):.4f} ± {np.std(found, ddof=1) / math.sqrt(SEEDS):.4f}")
        lines.append(f"| {form} | " + " | ".join(cells) + " |")
    head = f"""# A one-hot table as sparse rows

Adult's original file, one-hot encoded: {rows.shape[0]:,} rows of {rows.shape[1]} columns. AUC on held-out rows (75/25,
stratified), mean of five seeds and its standard error. Written by `python -m benchmarks.tables.sparse FILE`.
"""
    PAGE.write_text(head + "\n" + "\n".join(lines) + "\n", encoding="utf8")
    print(PAGE.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
