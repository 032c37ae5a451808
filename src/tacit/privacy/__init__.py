"""The privacy core: budgets, plans, accounting, noise, mechanisms, guarantees and audits.

    budget, plan, calibration   what may be given away, and how a fit intends to spend it
    gdp, accounting, events     what releases cost: exact Gaussian DP, PLD, Renyi DP
    noise                       the key stream, exact samplers, releases on a grid
    mechanisms, gate, path      private releases, each counted against the plan, and the path to them
    guarantee                   the statement a fit leaves behind
    audit                       attacks that try to refute such a statement

What holds: nothing here imports another room of Tacit, and nothing outside here draws noise.
"""

from tacit.privacy import audit, mechanisms
from tacit.privacy.accounting import UnsupportedEventError, delta_of, epsilon_of, mu_of
from tacit.privacy.budget import Budget
from tacit.privacy.calibration import BudgetExceededError
from tacit.privacy.gate import Gate, PlanViolationError
from tacit.privacy.guarantee import Guarantee, compose
from tacit.privacy.noise.grid import float_sum_slack, gaussian
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import Plan, Promise, Release, Unit

__all__ = [
    "Budget",
    "BudgetExceededError",
    "Gate",
    "Guarantee",
    "NoiseSource",
    "Plan",
    "PlanViolationError",
    "Promise",
    "Release",
    "Unit",
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
