"""A small study between real processes, and the same in one process to compare with."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit import load
from tacit.cli import main
from tacit.federated import Coordinator, Node, Party, Study
from tacit.federated.returned import Part
from tacit.federated.transports.flower.engine import free_port
from tacit.federated.transports.in_process import InProcess

WAIT = 240.0  # seconds; a loaded machine takes its time, and no test depends on how long
SIZES = {"hospital-a": 3, "hospital-b": 2}


class Running:
    """A `tacit federate` command in a process of its own; its lines are kept."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "tacit.cli", "federate", *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    @property
    def printed(self):
        return "\n".join(self.lines)

    def until(self, pattern):
        """Wait for a line, or for the end."""
        end = time.monotonic() + WAIT
        while not re.search(pattern, self.printed):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                pytest.fail(f"no {pattern!r} in:\n{self.printed}")
            time.sleep(0.05)
        return self

    def ended(self):
        """The exit code."""
        code = self.process.wait(WAIT)
        self._reader.join(WAIT)
        self.process.stdout.close()
        return code

    def kill(self):
        """What a power cut does to this process; its engine process notices that it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.ended()

    def kill_all(self):
        """The same to its engine process too, which then cannot say goodbye."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        self.kill()


class Trial:
    """A folder with a study, its keys and its tables. `holder`: the party with the labels; None: all."""

    def __init__(self, folder, holder=None, host="127.0.0.1", **agreed):
        self.folder, self.holder = folder, holder
        self.config = folder / "study.toml"
        told = {"name": "trial", "loss": "squared", "n_rows": 300, "l1_radius": 4.0, "epsilon": 2.0, "delta": 1e-4}
        told |= {"entry_bound": 1.0, "y_bounds": [-4.0, 4.0], "random_state": 5} | agreed
        members = [{"name": n, "n_features": d, "labels": self.holds(n)} for n, d in SIZES.items()]
        self.study = Study.from_dict(told | {"members": members})
        port = free_port()
        network = f'\n[network]\naddress = "{host}:{port}"\nlisten = "127.0.0.1:{port}"\ntimeout = {WAIT}\n'
        self.config.write_text(self.study.to_toml() + network)
        rng = np.random.default_rng(3)
        self.ids = [f"p{i}" for i in rng.permutation(300)]
        self.blocks = {name: rng.uniform(-1, 1, (300, size)).round(3) for name, size in SIZES.items()}
        self.y = (2 * self.blocks["hospital-a"][:, 0] - self.blocks["hospital-b"][:, 1]).round(3)
        for name, block in self.blocks.items():
            table = pd.DataFrame(block, columns=[f"c{j}" for j in range(block.shape[1])])
            table.assign(who=self.ids, y=self.y).sample(frac=1, random_state=1).to_csv(
                folder / f"{name}.csv", index=False
            )
        assert main(["federate", "keys", "--config", str(self.config), "--all"]) == 0

    def holds(self, name):
        """Whether a party has the labels."""
        return self.holder in (None, name)

    def sharing(self, _):
        """What a party names for what it shares with the others."""
        return ["--secret", self.folder / "keys" / "parties.secret"]

    def coordinator(self):
        return Running("coordinator", "--config", self.config, "--out", self.folder / "model.json")

    def party(self, name, *words, config=None):
        told = ["--data", self.folder / f"{name}.csv", "--label" if self.holds(name) else "--drop", "y", "--id", "who"]
        told += self.sharing(name)
        return Running("party", "--config", config or self.config, "--name", name, *told, *words)

    @property
    def model(self):
        return load(self.folder / "model.json")

    def in_one_process(self):
        """The model, and each party's ledger, without a network."""
        secret = (self.folder / "keys" / "parties.secret").read_bytes().strip()
        nodes = [Node(self.study, self._party(name, secret), warn=False) for name in self.blocks]
        return Coordinator(self.study).run(InProcess(nodes)), {node.name: node.ledger() for node in nodes}

    def _party(self, name, secret):
        return Party(self.blocks[name], self.y if self.holds(name) else None, name=name, ids=self.ids, secret=secret)

    def ledger(self, name):
        """What a party's own disk says that it released."""
        secret = (self.folder / "keys" / "parties.secret").read_bytes().strip()
        path = self.folder / "state" / "parties" / name / "journal.sqlite"
        node = Node(self.study, self._party(name, secret), path, warn=False)
        try:
            return node.ledger()
        finally:
            node.close()

    def check(self):
        """The model is the one that one process makes, bit for bit, and no party released anything more."""
        outcome, ledgers = self.in_one_process()
        model = self.model
        assert {name: coef.tolist() for name, coef in model.coefs_.items()} == {
            name: np.asarray(coef).tolist() for name, coef in outcome.model.coefs.items()
        }
        assert model.intercept_ == outcome.model.intercept
        assert any(coef.any() for coef in model.coefs_.values())
        assert model.uplink_bytes_ == outcome.uplink_bytes
        assert {name: self.ledger(name) for name in SIZES} == ledgers
        for name in SIZES:  # what came back
            part = Part.from_json((self.folder / "state" / "parties" / name / "part.json").read_text())
            assert list(part.coef) == model.coefs_[name].tolist()
        assert all(ledgers.values())
