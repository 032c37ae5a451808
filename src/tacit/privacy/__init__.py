"""The privacy core: budgets, plans, accounting, noise, mechanisms, guarantees and audits.

    budget, plan, calibration   what may be given away, and how a fit intends to spend it
    gdp, accounting, events     what releases cost: exact Gaussian DP, PLD, Renyi DP
    noise                       the key stream, exact samplers, releases on a grid
    mechanisms, meter           private releases, each counted against the plan
    guarantee                   the statement a fit leaves behind
    audit                       attacks that try to refute such a statement

Nothing here imports another room of Tacit. Nothing outside here draws noise.
"""

from tacit.privacy import audit, mechanisms
from tacit.privacy.accounting import UnsupportedEventError, delta_of, epsilon_of, mu_of
from tacit.privacy.budget import Budget
from tacit.privacy.calibration import BudgetExceededError
from tacit.privacy.guarantee import Guarantee, compose
from tacit.privacy.meter import Meter, PlanViolationError
from tacit.privacy.noise.grid import float_sum_slack, gaussian
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import CalibratedPlan, Plan, Release

__all__ = [
    "Budget",
    "BudgetExceededError",
    "CalibratedPlan",
    "Guarantee",
    "Meter",
    "NoiseSource",
    "Plan",
    "PlanViolationError",
    "Release",
    "UnsupportedEventError",
    "audit",
    "compose",
    "delta_of",
    "epsilon_of",
    "float_sum_slack",
    "gaussian",
    "mechanisms",
    "mu_of",
]
