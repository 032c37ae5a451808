"""Promises about different people, side by side: each person is in the releases of one of them alone.

Who is of which people is fixed by public numbers, not by values: by the place of a row. Let neighbours differ in one
person, who is of the first people. The releases about the others are then functions of rows that are the same in both
worlds and of what was released before, so given that they have the same law in both. What is left is the price of the
releases about the first people, each of which may be asked for by anything that was released before it. This holds for
a row that is absent, whose place stays, and for one that is replaced, which stays in its place. So both promises
together cost what the dearer one does.
"""

import math
from dataclasses import replace

from tacit.privacy.plan import Plan, Promise, Unit

_ROUNDED_UP = 1.0 + 1e-12  # of noise, so that it costs no more


def at_price_of(promise: Promise, plan: Plan, unit: Unit) -> Promise:
    """The promise of a plan of Gaussian releases, all with shares, that costs what another one does, and no more."""
    if any(release.kind != "gaussian" or release.share is None for release in plan.releases):
        raise ValueError("a plan gets the price of another if it is of Gaussian releases with shares")
    price = promise.plan.spends(promise.multipliers)
    parts = [(r.share or 0.0) / plan.shared for r in plan.releases]
    noise = [math.sqrt(r.count / (part * price)) * _ROUNDED_UP for r, part in zip(plan.releases, parts, strict=True)]
    return Promise(plan, promise.budget, unit, promise.solver, tuple(noise))


def beside(promise: Promise, others: Promise) -> Promise:
    """A promise, and one of Gaussian releases to other people that costs no more, as one with views.

    Its event is that of the first promise. It covers the others: in mu^2 if it is of Gaussians alone, and else in rho.
    """
    if any(release.kind != "gaussian" for release in others.plan.releases):
        raise ValueError("what is released about other people must be Gaussian")
    dearer = others.plan.spends(others.multipliers) > promise.plan.spends(promise.multipliers)
    if others.budget != promise.budget or dearer:
        raise ValueError("a promise to other people must be of the same budget, and cost no more")
    own, more = (0.0,) * len(promise.multipliers), (0.0,) * len(others.multipliers)
    views = [(*view, *more) for view in promise.plan.views or ((1.0,) * len(own),)]
    views += [(*own, *view) for view in others.plan.views or ((1.0,) * len(more),)]
    plan = Plan(*promise.plan.releases, *others.plan.releases, views=views)
    return replace(promise, plan=plan, multipliers=promise.multipliers + others.multipliers)
