"""Masked products: exact sums without noise, noise against every coalition, and the model of one table."""

import math
from itertools import chain, combinations
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression

from tacit.federated import FederatedLasso, FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols.base import RefusedError
from tacit.federated.protocols.marginals.masked import MaskedProtocol, coordinator, rules, seals, words
from tacit.privacy import Plan, Release, accounting, gdp
from tacit.privacy.gate import Gate
from tacit.privacy.mechanisms import GaussianWords, Sensitivity
from tacit.privacy.noise.source import NoiseSource
from tests.federated.protocols.masked_run import HOLDER, ROWS, SIZES, masked_study, run, some_data

ADJACENCIES = ("add-remove", "replace-one")


def test_products_of_words_are_those_of_whole_numbers():
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 2**64, (20_000, size), dtype=np.uint64) for size in (2, 3))
    left[0], right[0] = 2**64 - 1, 2**64 - 1
    exact = [[sum(int(a) * int(b) for a, b in zip(x, y, strict=True)) % 2**64 for y in right.T] for x in left.T]
    np.testing.assert_array_equal(words.product(left, right), np.array(exact, dtype=np.uint64))


def test_without_noise_masked_sums_are_plain_whole_sums():
    done = run(masked_study(epsilon=math.inf), *some_data())
    for one, other in done.pairs:
        plain = done.blocks[one].view(np.int64).T @ done.blocks[other].view(np.int64)
        np.testing.assert_array_equal(done.opened(one, other).view(np.int64), plain)
        assert not np.array_equal(done.rows(one), done.blocks[one])


def test_with_noise_they_are_off_by_both_parties_noise_and_nothing_else():
    done = run(masked_study(), *some_data())
    for one, other in done.pairs:
        noise = done.noise[one, done.protocol.share_name(other)] + done.noise[other, done.protocol.share_name(one)]
        plain = done.blocks[one].view(np.int64).T @ done.blocks[other].view(np.int64)
        np.testing.assert_array_equal((done.opened(one, other) - noise).view(np.int64), plain)


def test_without_privacy_it_is_least_squares_on_the_clipped_table():
    X, y = some_data(1, 300)
    model = FederatedLasso(math.inf, 1e-6, l1_radius=50.0, labels="held", protocol=Marginals(products="masked"))
    model.fit([Party(x, y if name == HOLDER else None, name=name) for name, x in X.items()])
    # The clip is found at the edge of a bin that holds the longest row: nothing is clipped.
    table = np.column_stack(list(X.values()))
    expected = LinearRegression().fit(table, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-4)
    assert model.uplink_bytes_["a"] > 8 * 300 * 3


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classes_and_models_without_intercept(fit_intercept):
    X, y = some_data(2, 2_000)
    labels = np.where(y > 0.2, "yes", "no")
    model = FederatedLogisticRegression(
        math.inf, 1e-6, l1_radius=20.0, labels="held", protocol=Marginals(products="masked"),
        classes=["no", "yes"], fit_intercept=fit_intercept,
    )  # fmt: skip
    model.fit([Party(x, labels if name == HOLDER else None, name=name) for name, x in X.items()])
    assert np.mean(model.predict(list(X.values())) == labels) > 0.85


def test_a_seeded_fit_repeats_itself_and_others_do_not():
    X, y = some_data(3)
    parties = [Party(x, y if name == HOLDER else None, name=name) for name, x in X.items()]
    told = {"l1_radius": 3.0, "labels": "held", "protocol": Marginals(products="masked"), "y_bounds": (-4, 4)}
    first, second = (FederatedLasso(1.0, 1e-6, random_state=1, **told).fit(parties) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    fresh = [FederatedLasso(50.0, 1e-6, **told).fit(parties).coef_ for _ in range(2)]
    assert not np.array_equal(*fresh)


# The plan.


def every_coalition(names):
    return chain.from_iterable(combinations(names, size) for size in range(len(names)))


def mu_squared(protocol, coalition, adjacency):
    """STUDY's formula, from the deviations of the noise, by sensitivities of both adjacencies."""
    outer, cross = (1.0, 1.0) if adjacency == "add-remove" else (math.sqrt(2.0), 2.0)
    names, total = protocol.study.names, 0.0
    for k in names:
        if k in coalition:
            continue
        own = protocol.noise(k, "moments", protocol.moments_of(k))
        total += (outer * protocol.own_norm(k) ** 2 / own) ** 2
        for m in names:
            if m != k:
                t = protocol.noise(k, protocol.share_name(m), protocol.products_of(k, m))
                part = (cross * protocol.norm(k) * protocol.norm(m) / t) ** 2
                total += part if m in coalition else part / 4.0  # half of it for the pair, which comes twice
    return total


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_plan_costs_what_the_worst_of_all_coalitions_sees(adjacency):
    protocol = MaskedProtocol(masked_study(adjacency=adjacency))
    promise = protocol.promise
    others = sum(
        1.0 / z**2
        for release, z in zip(promise.plan.releases, promise.multipliers, strict=True)
        if "products" not in release.name and "moments" not in release.name
    )
    costs = [mu_squared(protocol, T, adjacency) + others for T in every_coalition(protocol.study.names)]
    mu = accounting.mu_of(promise.event)
    assert mu**2 == pytest.approx(max(costs), rel=1e-9)
    assert mu == pytest.approx(gdp.mu_from_budget(1.0, 1e-6), rel=1e-5)
    assert mu <= gdp.mu_from_budget(1.0, 1e-6)


def test_noise_is_less_on_own_blocks_and_more_between_than_in_one_table():
    """Three parties alike: 0.88 and 1.25 of the noise that one table would have for rows of norm sqrt(3)."""
    with patch.object(rules, "_LABEL", 0.0), patch.object(rules, "SUMS", 0.0):
        protocol = MaskedProtocol(masked_study())
        own = protocol.noise("a", "moments", protocol.moments_of("a"))
        t = protocol.noise("a", protocol.share_name("c"), protocol.products_of("a", "c"))
        left = sum(
            1.0 / z**2
            for r, z in zip(protocol.promise.plan.releases, protocol.promise.multipliers, strict=True)
            if "products" not in r.name and "moments" not in r.name
        )
    central = 3.0 / math.sqrt(accounting.mu_of(protocol.promise.event) ** 2 - left)
    assert own / central == pytest.approx(math.sqrt(7.0) / 3.0, rel=1e-6)
    assert math.sqrt(2.0) * t / (central / math.sqrt(2.0)) == pytest.approx(1.247, abs=1e-3)


def test_a_pair_that_is_charged_twice_is_seen():
    protocol = MaskedProtocol(masked_study())
    twice = Plan(*protocol.plan().releases).calibrate(protocol.study.budget, protocol.promise.unit, "twice")
    once = protocol.promise.multiplier("a/products with party 3")
    assert twice.multiplier("a/products with party 3") > 1.2 * once  # more noise than the worst coalition asks for
    assert accounting.mu_of(Plan(*protocol.plan().releases).event(protocol.promise.multipliers)) > 0.3


def test_what_a_party_gave_away_is_what_all_others_together_see():
    protocol = MaskedProtocol(masked_study())
    own = protocol.promise.part("a/")
    assert accounting.mu_of(own.event) <= accounting.mu_of(protocol.promise.event)


def test_plans_refuse_views_that_no_gaussian_is_behind():
    first, second = Release("one", "exponential", share=1.0), Release("two", "gaussian", share=1.0)
    Plan(first, second, views=[(1.0, 0.5)])
    with pytest.raises(ValueError, match="is not one that a view can see a part of"):
        Plan(first, second, views=[(0.5, 1.0)])
    with pytest.raises(ValueError, match="a part of a view"):
        Plan(second, views=[(1.5,)])
    with pytest.raises(ValueError, match="would be free: two"):
        Plan(first, second, views=[(1.0, 0.0), (1.0, 0.0)])
    with pytest.raises(ValueError, match="cannot be put together"):
        Plan(second, views=[(1.0,)]) + Plan(first)


def test_words_have_the_noise_that_was_promised():
    plan = Plan(Release("share", "gaussian", share=1.0, count=3))
    promise = plan.calibrate(masked_study().budget, MaskedProtocol(masked_study()).promise.unit, "words")
    gate = Gate(promise, NoiseSource(7))
    unit = math.ldexp(1.0, 20) / promise.multiplier("share")
    zeros = np.zeros((100, 100), dtype=np.uint64)
    drawn = gate.release("share", GaussianWords(Sensitivity.vector(unit * (1 - 1e-12)), 20), zeros).view(np.int64)
    assert np.std(drawn) == pytest.approx(2.0**20, rel=0.03)  # four deviations of 10,000 draws
    with pytest.raises(ValueError, match="less than the promise says"):
        gate.release("share", GaussianWords(Sensitivity.vector(1.01 * unit), 20), zeros)
    with pytest.raises(ValueError, match="is too coarse"):
        gate.release("share", GaussianWords(Sensitivity.vector(2.0**-20 * unit), 2), zeros)
    with pytest.raises(TypeError, match="words with noise are uint64"):
        gate.release("share", GaussianWords(Sensitivity.vector(unit), 20), zeros.view(np.int64))


def test_the_sum_of_two_floors_follows_from_the_sum_of_the_noise():
    """At the fewest bits: the fraction of one share's noise, given the sum of both, is uniform."""
    sigma = 2.0**GaussianWords.least_bits
    for total in (0.0, 0.3, 5.7):
        edges = np.arange(-20 * sigma, 20 * sigma, 0.125)
        masses = np.diff(ndtr((edges - total / 2) / (sigma / math.sqrt(2.0))))
        parts = [math.fsum(masses[k::8]) for k in range(7)]
        np.testing.assert_allclose(parts, 0.125, rtol=0, atol=1e-14)


def test_a_budget_with_next_to_no_noise_is_refused():
    with pytest.raises(ValueError, match="no room for so little noise"):
        MaskedProtocol(masked_study(epsilon=1e15, n_rows=10**12, delta=1e-13))


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 100.0, 1e6, math.inf])
@pytest.mark.parametrize("rows", [10, 10**5, 10**9])
@pytest.mark.filterwarnings("ignore:delta")
def test_sums_and_noise_fit_a_word_and_the_noise_is_all_there(epsilon, rows):
    protocol = MaskedProtocol(masked_study(epsilon=epsilon, n_rows=rows, delta=1e-6))
    grid, norm = protocol.grid, max(map(protocol.norm, SIZES))
    assert rows * (norm * grid.steps) ** 2 + 100.0 * 2.0**grid.bits < 2.0**63
    for k, m in combinations(SIZES, 2):
        assert protocol.noise(k, protocol.share_name(m), protocol.products_of(k, m)) * grid.steps**2 <= 2.0**grid.bits


def test_options_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="come together"):
        masked_study(protocol=Marginals())
    with pytest.raises(ValueError, match="come together"):
        masked_study(labels="sketched")
    with pytest.raises(ValueError, match="exactly one party"):
        masked_study(members=tuple(m.__class__(m.name, 2, True) for m in masked_study().members))
    with pytest.raises(ValueError, match="at least two"):
        masked_study(members=masked_study().members[1:2])
    with pytest.raises(ValueError, match="leave out n_selected and cross"):
        masked_study(protocol=Marginals(products="masked", n_selected=2))
    with pytest.raises(ValueError, match="products must be"):
        masked_study(protocol=Marginals(products="open"))
    study = masked_study()
    assert study.from_dict(study.to_dict()) == study
    with pytest.raises(ValueError, match="not 'squared_hinge'"):
        MaskedProtocol(masked_study(loss="squared_hinge", classes=(0, 1), y_bounds=None))


# Keys and boxes.


def test_hellos_and_boxes_are_for_one_study_one_secret_and_one_party():
    one, other = (seals.Sealer.new("00" * 32, name, b"s" * 16) for name in "ab")
    one.check("b", other.hello())
    for stranger in (seals.Sealer.new("00" * 32, "b", b"t" * 16), seals.Sealer.new("11" * 32, "b", b"s" * 16)):
        with pytest.raises(RefusedError, match="parties' secret"):
            one.check("b", stranger.hello())
    with pytest.raises(RefusedError):
        one.check("c", other.hello())
    box = one.closed(b"x" * 32, "b", other.hello())
    assert other.opened(box, "a", one.hello()) == b"x" * 32
    assert b"x" * 8 not in box
    for changed in (box[:-1] + bytes([box[-1] ^ 1]), bytes(len(box)), b""):
        with pytest.raises((RefusedError, ValueError)):
            other.opened(changed, "a", one.hello())
    with pytest.raises(RefusedError):
        one.opened(box, "b", other.hello())  # a box of its own comes back
    with pytest.raises(RefusedError, match="is not one"):
        one.closed(b"x" * 32, "b", seals.Hello(bytes(32), bytes(32)))


def test_words_differ_in_every_part_of_their_label():
    given = ([b"a" * 32, b"b" * 32], ["share", "a", "b"], b"t" * 32)
    first = seals.stream(*given, (2, 3))
    np.testing.assert_array_equal(first, seals.stream(*given, (2, 3)))
    others = [
        ([b"b" * 32, b"a" * 32], *given[1:]),
        (given[0], ["share", "b", "a"], given[2]),
        (given[0], ["share", "ab", ""], given[2]),
        (*given[:2], b"u" * 32),
    ]
    for other in others:
        assert not np.any(seals.stream(*other, (2, 3)) == first)


def test_opened_sums_are_kept_in_place_of_rows():
    done = run(masked_study(), *some_data())
    answers = {name: done.arrays(name) for name in SIZES}
    kept = coordinator.settled(done.protocol, answers)
    assert all("rows" not in answer for answer in kept.values())
    before, after = (coordinator.opened(done.protocol, said) for said in (answers, kept))
    for pair, opened in before.items():
        np.testing.assert_array_equal(opened, after[pair])
    assert coordinator.settled(done.protocol, kept) is kept
    assert done.protocol.study.n_rows == ROWS
