"""A party's side of masked products: its units and its key, then boxes with its seed, then its block under masks."""

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.blocks.table import is_sparse
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError
from tacit.federated.protocols.bounds import STEP as BOUNDS
from tacit.federated.protocols.marginals.masked import words
from tacit.federated.protocols.marginals.masked.rules import SHRINK, MaskedAgreement
from tacit.federated.protocols.marginals.masked.seals import (
    BOX_BYTES,
    CODE_BYTES,
    KEY_BYTES,
    SEED_BYTES,
    Hello,
    Sealer,
    stream,
    transcript,
)
from tacit.federated.protocols.marginals.masked.words import Words
from tacit.federated.protocols.marginals.party import bounded, own_target, remembered_target, row_norm
from tacit.federated.protocols.marginals.rules import SUMS
from tacit.privacy import Gate
from tacit.privacy.mechanisms import GaussianMatrix, GaussianWords, Sensitivity

UNITS, SEEDS, PRODUCTS = "units", "seeds", "products"  # the steps
KEY, CODE, BOXES, ROWS = "key", "code", "boxes", "rows"  # sent beside releases
KEYS, CODES = "keys", "codes"  # asked with
PRIVATE, SEED, HELLOS, BLOCK = "private key", "seed", "hellos", "block"  # remembered


def units(agreed: MaskedAgreement, holding: Holding, question: Question, gate: Gate) -> Answer:
    """The step "units": what rows and labels are clipped to, and the party's hello."""
    if question.arrays:
        raise RefusedError("the step 'units' takes no arrays")
    found: dict[str, Floats] = {}
    told: Arrays = {}
    if agreed.holds_labels(holding.name):
        if agreed.bounds.needed:
            found |= agreed.bounds.answer(holding, Question(BOUNDS), gate)
        limits = agreed.label_range({holding.name: found})
        told = own_target(agreed.study, holding, limits, None, gate)
        if agreed.study.fit_intercept:
            found["label mean"] = told["label mean"]
    found["row norm"] = np.array(row_norm(agreed.study, bounded(agreed.study, holding.X), gate))
    sealer = Sealer.new(agreed.study.digest, holding.name, _secret(holding))
    hello = sealer.hello()
    memory = {**told, "row norm": found["row norm"][:1], PRIVATE: _bytes(sealer.private)}
    return Answer(found, memory, {KEY: _bytes(hello.key), CODE: _bytes(hello.code)})


def seeds(agreed: MaskedAgreement, holding: Holding, question: Question, units: Arrays) -> Answer:
    """The step "seeds": a seed from the operating system, in a box for each other party.

    It follows from nothing: a party that enrols again, after it lost its journal, has other masks. A digest of the
    block is remembered: under one mask there is to be one block, also where another machine rounds differently.
    """
    sealer = _sealer(agreed, holding, units)
    hellos = _hellos(agreed, question, {KEYS, CODES}, sealer)
    seed = secrets.token_bytes(SEED_BYTES)
    boxes = b"".join(
        bytes(BOX_BYTES) if name == holding.name else sealer.closed(seed, name, hello)
        for name, hello in zip(agreed.study.names, hellos, strict=True)
    )
    own = _bytes(boxes).reshape(-1, BOX_BYTES)
    memory = {SEED: _bytes(seed), HELLOS: _bytes(_joined(hellos)), BOXES: own}
    memory[BLOCK] = digest_of(whole_block(agreed, holding, units))
    return Answer({}, memory, {BOXES: own})


def products(agreed: MaskedAgreement, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
    """The step "products": the block under a mask, the party's own moments, and its share of each product."""
    return shares(agreed, Masks.of(agreed, holding, question, memory), holding, gate, memory)


def shares(agreed: MaskedAgreement, masks: "Masks", holding: Holding, gate: Gate, memory: Arrays) -> Answer:
    """All that a party says of its block, which must be the one that it remembers."""
    block, name, names = whole_block(agreed, holding, memory), holding.name, agreed.study.names
    if digest_of(block).tobytes() != memory[BLOCK].tobytes():
        raise RefusedError(f"the rows of {name!r} are rounded differently than before: go on where it began")
    own = gate.release("moments", *_own_moments(agreed, name, block))
    releases = {"moments": own[np.triu_indices(len(own))]}
    rows = block + masks.mask(name)
    for other in (other for other in names if other != name):
        first = names.index(name) < names.index(other)
        if first:
            share = masks.between(name, other) - words.product(block, masks.mask(other))
        else:
            share = -masks.between(other, name) - words.product(masks.mask(other), rows)
        noise = GaussianWords(_whole(agreed, agreed.products_of(name, other)), agreed.grid.bits)
        noisy = gate.release(agreed.share_name(other), noise, share)
        releases[agreed.share_name(other)] = noisy.view(np.int64)
    return Answer(releases, beside={ROWS: rows.view(np.int64)})


@dataclass(frozen=True, eq=False)
class Masks:
    """The words that all parties know and the coordinator does not."""

    agreed: MaskedAgreement
    seeds: tuple[bytes, ...]  # of all parties, in their order
    transcript: bytes

    @classmethod
    def of(
        cls, agreed: MaskedAgreement, holding: Holding, question: Question, memory: Arrays, step: str = PRODUCTS
    ) -> "Masks":
        """From the boxes that the others closed for this party; anything but what it saw and sent is refused."""
        names, own = agreed.study.names, agreed.study.names.index(holding.name)
        sealer = _sealer(agreed, holding, memory)
        hellos = _hellos(agreed, question, {KEYS, CODES, BOXES}, sealer)
        boxes = _numbers(question, BOXES, (len(names), len(names), BOX_BYTES))
        if SEED not in memory:
            raise RefusedError("the step 'products' comes after 'seeds'")
        if _joined(hellos) != memory[HELLOS].tobytes() or boxes[own].tobytes() != memory[BOXES].tobytes():
            raise RefusedError("the keys and boxes are not those that this party saw and sent")
        found = [
            memory[SEED].tobytes() if k == own else sealer.opened(boxes[k, own].tobytes(), name, hellos[k])
            for k, name in enumerate(names)
        ]
        return cls(agreed, tuple(found), transcript(agreed.study.digest, step, hellos, boxes.tobytes()))

    def mask(self, name: str) -> Words:
        """The mask of a party's block: from its own seed."""
        study = self.agreed.study
        seed = self.seeds[study.names.index(name)]
        return stream([seed], ["block", name], self.transcript, (study.n_rows, self.agreed.width(name)))

    def between(self, first: str, second: str) -> Words:
        """What one party adds to its share and the other takes off: from all seeds."""
        shape = self.agreed.width(first), self.agreed.width(second)
        return stream(self.seeds, ["share", first, second], self.transcript, shape)


def whole_block(agreed: MaskedAgreement, holding: Holding, memory: Arrays) -> Words:
    """The party's rows as whole numbers modulo 2^64: clipped, and cut toward zero, so that no row gets longer."""
    rows = columns.unit_rows(bounded(agreed.study, holding.X), float(memory["row norm"][0]))
    rows = rows.toarray() if is_sparse(rows) else rows
    if agreed.holds_labels(holding.name):
        target = remembered_target(agreed.study, holding, memory)
        labels = np.clip(target.values / target.bound, -1.0, 1.0) * agreed.label_weight
        rows = np.column_stack([rows, labels])
    return np.trunc(rows * (SHRINK * agreed.grid.steps)).astype(np.int64).view(np.uint64)


def digest_of(block: Words) -> NDArray[np.uint8]:
    """It never leaves the party, and is wiped with its seed."""
    return _bytes(hashlib.sha256(block.tobytes()).digest())


def _own_moments(agreed: MaskedAgreement, name: str, block: Words) -> tuple[GaussianMatrix, Floats]:
    """The second moments of the block with a constant column, exact but for the last rounding; and their noise."""
    steps, norm = agreed.grid.steps, agreed.own_norm(name)
    constant = np.full((len(block), 1), np.uint64(SUMS * SHRINK * steps))
    own = np.column_stack([block, constant])
    mechanism = GaussianMatrix(agreed.moments_of(name), bound=agreed.study.n_rows * norm**2)
    return mechanism, words.signed(words.product(own, own)) / steps**2


def _whole(agreed: MaskedAgreement, sensitivity: Sensitivity) -> Sensitivity:
    """A sensitivity of products in steps of the grid."""
    steps = agreed.grid.steps**2
    return Sensitivity(sensitivity.add_remove * steps, sensitivity.replace_one * steps)


def _secret(holding: Holding) -> bytes:
    if holding.secret is None:
        raise RefusedError(f"party {holding.name!r} was not given the secret that the parties share")
    return holding.secret


def _sealer(agreed: MaskedAgreement, holding: Holding, memory: Arrays) -> Sealer:
    if PRIVATE not in memory:
        raise RefusedError("this step comes after 'units', and not after the study is done")
    return Sealer(agreed.study.digest, holding.name, memory[PRIVATE].tobytes(), _secret(holding))


def _hellos(agreed: MaskedAgreement, question: Question, known: set[str], sealer: Sealer) -> list[Hello]:
    """All parties' hellos, this one's own among them; what was not made with the parties' secret is refused."""
    if set(question.arrays) != known:
        raise RefusedError(f"the step {question.step!r} takes the arrays {', '.join(sorted(known))}")
    names = agreed.study.names
    keys = _numbers(question, KEYS, (len(names), KEY_BYTES))
    codes = _numbers(question, CODES, (len(names), CODE_BYTES))
    hellos = [Hello(key.tobytes(), code.tobytes()) for key, code in zip(keys, codes, strict=True)]
    for name, hello in zip(names, hellos, strict=True):
        sealer.check(name, hello)
    if hellos[names.index(sealer.name)] != sealer.hello():
        raise RefusedError("the keys are not of this run: this party's own is another one")
    return hellos


def _numbers(question: Question, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array of bytes in a question; another form is refused."""
    array = question.arrays[name]
    if array.dtype != np.uint8 or array.shape != shape:
        raise RefusedError(f"the array {name!r} of the step {question.step!r} must hold bytes, of shape {shape}")
    return array


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def _joined(hellos: list[Hello]) -> bytes:
    return b"".join(part for hello in hellos for part in hello)
