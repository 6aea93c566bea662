"""Runs the suites against the simulated deployment bent by each named fault, and prints what noticed it.

usage: python scripts/try_fault.py FAULT [FAULT ...] [--variant a|b]
Compares with what the fault names: `+` noticed but not named, `-` named but not noticed. Exit code 1 on a difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from kimi_eval.verdict import Status
from tests.running import expected, failed, measured


def main() -> int:
    """Tries every fault that is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="+")
    parser.add_argument("--variant", default="a")
    given = parser.parse_args()
    different = 0
    for name in given.faults:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            card = measured(Path(folder), fault=name, variant=given.variant)
        noticed, named = failed(card), expected(name)
        print(f"{name}: {len(noticed)} noticed, {len(named)} named, {time.monotonic() - start:.1f} s")
        for verdict in card.verdicts:
            if verdict.status is Status.ERROR or (
                verdict.status is Status.INCONCLUSIVE and verdict.address not in named
            ):
                print(f"  {verdict.status} {verdict.address}: {verdict.reason.strip()[-200:]}")
        for address in sorted(noticed ^ named):
            finding = next((v.findings[0] for v in card.verdicts if v.address == address and v.findings), "")
            print(f"  {'+' if address in noticed else '-'} {address}  {str(finding)[:160]}")
        different += noticed != named
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
