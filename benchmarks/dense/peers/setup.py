"""Makes the environments of the peers, each pinned in the text file of its name.

    python -m benchmarks.dense.peers.setup [--only opacus]

A peer that cannot be installed is named, and the benchmark then skips it by name.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = ("diffprivlib", "opacus")


def python(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    folder = HERE / f".venv-{peer}"
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin" / "python"


def why_missing(peer: str) -> str:
    """Why a peer cannot run here; empty if it can."""
    if not python(peer).exists():
        return "not set up: run `python -m benchmarks.dense.peers.setup`"
    found = subprocess.run([str(python(peer)), "-c", f"import {peer}"], capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else f"does not import: {found.stderr.strip().splitlines()[-1]}"


def install(peer: str) -> bool:
    """Make one environment; says whether that worked."""
    folder = HERE / f".venv-{peer}"
    pip = [str(python(peer)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, "-r", str(HERE / f"{peer}.txt")]):
        if subprocess.run(command, check=False).returncode != 0:
            return False
    return True


def main() -> None:
    """Install the peers that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PEERS, default=PEERS, help="which (default: all)")
    arguments = parser.parse_args()
    for peer in arguments.only:
        reason = why_missing(peer) and not install(peer) and why_missing(peer)
        print(f"{peer}: {'skipped, ' + reason if reason else 'ready'}")


if __name__ == "__main__":
    main()
