"""The `tacit` command: what can be said to it. `tacit.commands` does the work."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tacit import __version__

_ADJACENCIES = ("add-remove", "replace-one")
_PEER = "of two parties, in place of --secret: the other one's public key, as it says it is"


class Parser(argparse.ArgumentParser):
    """Errors are one line; `--help` shows the rest."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and stop with 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = parser().parse_args(argv)
    arguments.words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = import_module(f"tacit.commands.{arguments.command}").run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone; nothing is left to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError) as error:
        arguments.parser.error(" ".join(str(error).split()))
    return int(code)


def parser() -> Parser:
    """All commands with their arguments; none of Tacit's rooms is loaded for it."""
    top = Parser(prog="tacit", description="Differentially private linear models and PCA.")
    top.add_argument("--version", action="version", version=f"tacit {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    for name, add, text in (
        ("fit", _fit, "fit a private model to a csv or parquet table"),
        ("predict", _predict, "predict with a fitted model"),
        ("calibrate", _calibrate, "from epsilon to noise and back, without data"),
        ("audit", _audit, "attack a solver on worst-case neighbours"),
        ("federate", _federate, "train between organisations that hold different columns of the same people"),
        ("demo", _demo, "train private models on real data, and show what they cost"),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(parser=command)
        add(command)
    return top


def _fit(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("data", type=Path, help="a csv, tsv (also .gz) or parquet file")
    add("--target", metavar="COLUMN", help="the column to predict (or `target` in the schema)")
    add("--epsilon", type=float, required=True, help="the privacy budget; inf is the non-private limit")
    add("--delta", type=float, help="default: rows^-1.5")
    add("--adjacency", choices=_ADJACENCIES, default="add-remove", help="what neighbours are (default: %(default)s)")
    add("--out", type=Path, metavar="MODEL", help="where to write the model (JSON; default: model.json)")
    add("--report", type=Path, metavar="HTML", help="where to write the report")
    declared = command.add_argument_group("what is declared, and so costs no budget")
    add = declared.add_argument
    add("--schema", type=Path, help="a TOML or JSON file with target, classes, y_bounds, columns, drop, fill")
    add("--categories", action="append", default=[], metavar="COLUMN=A,B", help="the categories of a column; repeat")
    add("--numbers", metavar="COLUMNS", help="columns that hold numbers, separated by commas")
    add("--booleans", metavar="COLUMNS", help="columns that hold 0 and 1, or true and false: their bounds are free")
    add("--public-categories", metavar="COLUMNS", help="read these columns' categories off the data: not covered")
    add("--drop", metavar="COLUMNS", help="columns to leave out, separated by commas")
    add("--fill", action="append", default=[], metavar="COLUMN=VALUE", help="a constant for missing values; repeat")
    add("--classes", metavar="A,B", help="the classes of the target")
    add("--y-bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="bounds of the target of a regression")
    add("--row-norm", type=float, help="a bound on the l2 norm of an encoded row")
    model = command.add_argument_group("the model")
    add = model.add_argument
    add("--task", choices=("classification", "regression"), help="default: by what is declared")
    add(
        "--model",
        choices=("logistic", "linear-svc", "linear", "ridge", "lasso", "elastic-net"),
        help="default: logistic or linear, by the task",
    )
    add("--solver", default="auto", help="default: %(default)s")
    add("--C", type=float, help="inverse strength of the penalty (logistic, linear-svc)")
    add("--loss", choices=("squared_hinge", "hinge"), help="what is minimised (linear-svc)")
    add("--alpha", type=float, help="strength of the penalty (ridge, lasso, elastic-net)")
    add("--l1-ratio", type=float, help="the part of the l1 penalty (elastic-net)")
    add("--no-intercept", action="store_true", help="no intercept and no centring")
    add("--seed", type=int, help="reproducible noise, and no privacy against those who know the number")
    other = command.add_argument_group("other")
    add = other.add_argument
    add("--separator", help="between the fields of a csv file (default: a comma; a tab for .tsv)")
    add("--workers", metavar="ADDRESS", help="the scheduler of a Dask cluster whose workers see the file: tcp://...")
    add("--sklearn", action="store_true", help="write a pickled scikit-learn pipeline, for where tacit is not")
    add("--verbose", action="store_true", help="show how far the fit has come")


def _predict(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, help="what `tacit fit` wrote")
    add("data", type=Path, help="a csv, tsv (also .gz) or parquet file with the columns of the fit")
    add("--proba", action="store_true", help="probabilities of the classes")
    add("--keep", action="append", default=[], metavar="COLUMN", help="a column to carry along, such as an id; repeat")
    add("--out", type=Path, help="a csv or parquet file (default: csv on the standard output)")
    add("--separator", help="between the fields of a csv file (default: a comma; a tab for .tsv)")
    add("--trust-pickle", action="store_true", help="read a pickle (joblib) too, which runs code that is in it")


def _calibrate(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--epsilon", type=float, help="the budget to meet")
    add("--mu", type=float, help="the same as Gaussian DP")
    add("--noise-multiplier", type=float, nargs="+", metavar="Z", help="noise over sensitivity of Gaussian releases")
    add("--recompute", type=Path, metavar="JSON", help="a stored guarantee")
    add("--delta", type=float, help="default: rows^-1.5")
    add("--count", type=int, nargs="+", metavar="K", help="how often each release is made (default: 1)")
    add("--sampling", type=float, nargs="+", metavar="Q", help="the part of the rows in each release (default: 1)")
    _problem(command)
    add("--rows", type=int, help="of a fit")
    add("--columns", type=int, help="of a fit, after encoding")
    add("--classes", type=int, default=2, metavar="K", help="how many classes (default: %(default)s)")
    add("--row-norm", type=float, help="a declared bound on the norm of a row")
    add("--y-bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="declared bounds of the target")
    add("--sparse", action="store_true", help="sparse data")
    add("--no-intercept", action="store_true", help="no intercept")
    add("--json", action="store_true", help="print JSON")


def _audit(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--epsilon", type=float, default=5.0, help="the claim to attack (default: %(default)s)")
    add("--delta", type=float, default=1e-3, help="default: %(default)s")
    _problem(command)
    add("--trials", type=int, help="runs on each of the two neighbours (default: what fits into half a minute)")
    add("--steps", choices=("one", "own"), default="one", help="one step, or its own number (default: %(default)s)")
    add("--confidence", type=float, default=0.99, help="of the bound (default: %(default)s)")
    add("--json", action="store_true", help="print JSON")


def _problem(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--solver", default="auto", help="default: %(default)s")
    add(
        "--loss", default="logistic", help="logistic, multinomial, squared, hinge, squared_hinge (default: %(default)s)"
    )
    add("--adjacency", choices=_ADJACENCIES, default="add-remove", help="what neighbours are (default: %(default)s)")


def _federate(command: argparse.ArgumentParser) -> None:
    parts = command.add_subparsers(dest="part", required=True)
    for name, add_to, text in (
        ("keys", _federate_keys, "make keys and certificates"),
        ("coordinator", _federate_coordinator, "ask the parties and write the model; sees no data"),
        ("align", _federate_align, "find the people whom all parties have, before a study"),
        ("party", _federate_party, "answer the coordinator from a table that stays here"),
        ("score", _federate_score, "a party's share of predictions for people who are asked about; not private"),
        ("cap", _federate_cap, "fix what all studies on the same people may give away together"),
        ("ledger", _federate_ledger, "show every message that a party sent, and what is left of its cap"),
    ):
        part = parts.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        part.set_defaults(parser=part)
        if name in ("cap", "ledger"):  # of all studies
            add_to(part)
            continue
        part.add_argument("study", type=Path, nargs="?", metavar="STUDY", help="the study file (TOML)")
        part.add_argument("--config", type=Path, metavar="STUDY", help="the same, with a name")
        add_to(part)


def _federate_keys(command: argparse.ArgumentParser) -> None:
    add = command.add_mutually_exclusive_group(required=True).add_argument
    add("--coordinator", action="store_true", help="the coordinator's certificate")
    add("--name", metavar="PARTY", help="the key pair of a party")
    add("--secret", action="store_true", help="the secret that the parties share")
    add("--all", action="store_true", help="everything in one place, for a trial on one machine")


def _federate_coordinator(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--out", type=Path, required=True, metavar="MODEL", help="where to write the model (JSON)")
    add("--state", type=Path, metavar="FOLDER", help="what survives a crash (default: state/coordinator)")


def _federate_align(command: argparse.ArgumentParser) -> None:
    add = command.add_mutually_exclusive_group(required=True).add_argument
    add("--coordinator", action="store_true", help="carry what the parties send, and keep how many match")
    add("--name", metavar="PARTY", help="the party, as the study calls it")
    add = command.add_argument
    add("--psi", action="store_true", help="two parties by private set intersection; all three say so")
    add("--data", type=Path, help="the party's table: a csv, tsv (also .gz) or parquet file")
    add("--id", metavar="COLUMN", help="whom a row is about")
    add("--secret", type=Path, metavar="FILE", help="the secret that the parties share")
    add("--peer", type=Path, metavar="FILE", help=_PEER)
    add("--separator", help="between the fields of a csv file (default: a comma; a tab for .tsv)")
    add("--key", type=Path, metavar="FILE", help="the party's private key (default: by the study file)")
    add("--state", type=Path, metavar="FOLDER", help="what survives a crash (default: as for coordinator and party)")


def _federate_party(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--name", required=True, metavar="PARTY", help="as the study calls it")
    add("--data", type=Path, required=True, help="a csv, tsv (also .gz) or parquet file; numbers only")
    add("--id", metavar="COLUMN", help="whom a row is about; without it, row i is the same person everywhere")
    add("--secret", type=Path, metavar="FILE", help="the secret that the parties share; needed with --id")
    add("--peer", type=Path, metavar="FILE", help=_PEER)
    add("--label", metavar="COLUMN", help="the labels, if this party holds them")
    add("--drop", metavar="COLUMNS", help="columns to leave out, separated by commas")
    add("--fill", action="append", default=[], metavar="COLUMN=VALUE", help="a constant for missing values; repeat")
    add("--separator", help="between the fields of a csv file (default: a comma; a tab for .tsv)")
    add("--key", type=Path, metavar="FILE", help="the party's private key (default: by the study file)")
    add("--cap", type=Path, metavar="FILE", help="what all studies may give away (default: by the study file, or none)")
    add("--state", type=Path, metavar="FOLDER", help="what survives a crash (default: state/parties/PARTY)")


def _federate_score(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    part = command.add_mutually_exclusive_group(required=True)
    part.add_argument("--coordinator", action="store_true", help="carry boxes between the parties")
    part.add_argument("--name", metavar="PARTY", help="as the study calls it")
    add("--network", action="store_true", help="send margins over the network, to whom --to names; with --secret")
    add("--data", type=Path, help="the party's table, with the columns of the study")
    add("--id", metavar="COLUMN", help="whom a row is about")
    add("--ids", type=Path, metavar="FILE", help="a table with the same column: whom to predict for")
    add("--to", metavar="PARTY", help="who gets the margins; it names itself to add them up")
    add("--add", type=Path, nargs="*", default=[], metavar="FILE", help="what the other parties wrote for it")
    add("--out", type=Path, help="a csv or parquet file")
    add("--secret", type=Path, metavar="FILE", help="the secret that the parties share; with --network")
    add("--peer", type=Path, metavar="FILE", help=_PEER)
    add("--key", type=Path, metavar="FILE", help="the party's private key (default: by the study file)")
    add(
        "--without", action="append", default=[], metavar="PARTY", help="to the coordinator: who left the study; repeat"
    )
    add("--label", metavar="COLUMN", help="a column of labels, which is left out")
    add("--drop", metavar="COLUMNS", help="columns to leave out, separated by commas")
    add("--fill", action="append", default=[], metavar="COLUMN=VALUE", help="a constant for missing values; repeat")
    add("--separator", help="between the fields of a csv file (default: a comma; a tab for .tsv)")
    add("--state", type=Path, metavar="FOLDER", help="where the party's part of the model is (default: by the study)")


def _federate_cap(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("file", type=Path, help="the file to make; it is never overwritten")
    add("--epsilon", type=float, required=True, help="of all studies together")
    add("--delta", type=float, required=True, help="of all studies together")
    add("--people", required=True, metavar="TEXT", help="whom it is about, in your own words")
    add("--adjacency", choices=_ADJACENCIES, default="add-remove", help="what neighbours are (default: %(default)s)")


def _federate_ledger(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--cap", type=Path, metavar="FILE", help="the party's cap: the journals of all its studies are shown")
    add("--journal", type=Path, action="append", default=[], metavar="FILE", help="a journal to show; repeat")
    add("--html", type=Path, metavar="FILE", help="where to write the same as a page")


def _demo(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--epsilon", type=float, nargs="+", help="budgets to try (default: 0.1 to 10, and no privacy)")
    add("--repeats", type=int, default=3, help="fits to average for each budget (default: %(default)s)")
    add("--out", type=Path, default=Path("demo"), help="folder for the plot and page (default: %(default)s)")


if __name__ == "__main__":
    sys.exit(main())
