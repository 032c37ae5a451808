"""DP-SGD with opacus on one problem; run by the benchmark in the environment `.venv-opacus`.

python opacus_runner.py problem.npz
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import grids
import numpy as np
import problem
import torch
from opacus import GradSampleModule
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer

torch.set_num_threads(1)


NOISE = Path(__file__).resolve().parents[2] / ".cache" / "opacus_noise.json"


def noise_multiplier(epsilon: float, delta: float, steps: int) -> float:
    """The noise of so many steps, by opacus' own accountant. It depends on no data, and is kept for the next run."""
    known = json.loads(NOISE.read_text()) if NOISE.exists() else {}
    key = f"{epsilon!r} {delta!r} {grids.OPACUS_SAMPLING!r} {steps}"
    if key not in known:
        NOISE.parent.mkdir(exist_ok=True)
        known[key] = _calibrated(epsilon, delta, steps)
        NOISE.write_text(json.dumps(known))
    return known[key]


def _calibrated(epsilon: float, delta: float, steps: int) -> float:
    return get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=grids.OPACUS_SAMPLING,
        steps=steps,
        accountant="prv",
        epsilon_tolerance=0.01 * epsilon,
    )


def trained(X: torch.Tensor, y: torch.Tensor, kind: str, noise: float, steps: int, rate: float, clip: float) -> Any:
    """A linear layer after DP-SGD on Poisson samples."""
    layer = torch.nn.Linear(X.shape[1], 1)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    model = GradSampleModule(layer)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=rate / clip, momentum=grids.OPACUS_MOMENTUM),
        noise_multiplier=noise,
        max_grad_norm=clip,
        expected_batch_size=max(1, int(grids.OPACUS_SAMPLING * len(X))),
    )
    loss = torch.nn.BCEWithLogitsLoss() if kind == "classification" else torch.nn.MSELoss()
    for _ in range(steps):
        batch = torch.rand(len(X)) < grids.OPACUS_SAMPLING
        optimizer.zero_grad()
        loss(model(X[batch])[:, 0], y[batch]).backward()
        optimizer.step()
    return layer


def fit(arrays: dict[str, Any], settings: dict[str, Any], epsilon: float, point: dict[str, float]) -> dict[str, float]:
    """Train at one epsilon with one setting, and score on the test rows."""
    steps = round(point["epochs"] / grids.OPACUS_SAMPLING)
    noise = noise_multiplier(epsilon, settings["delta"], steps)
    torch.manual_seed(settings["seed"])
    X, y = (torch.as_tensor(arrays[name], dtype=torch.float32) for name in ("X_train", "y_train"))
    start = time.perf_counter()
    layer = trained(X, y, settings["kind"], noise, steps, point["rate"], point["clip"])
    seconds = time.perf_counter() - start
    with torch.no_grad():
        margins = layer(torch.as_tensor(arrays["X_test"], dtype=torch.float32))[:, 0].numpy().astype(np.float64)
    if settings["kind"] == "regression":
        return {**problem.regression(arrays["y_test"], margins), "seconds": seconds}
    return {**problem.classification(arrays["y_test"], 1.0 / (1.0 + np.exp(-margins))), "seconds": seconds}


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.run(fit)
