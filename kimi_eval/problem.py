"""Problem: something the user can mend, in one sentence, with the exit code it ends in."""

from __future__ import annotations

USAGE = 2
OUR_BUG = 3
NOT_MEASURED = 4


class Problem(Exception):
    """What is wrong, where, and what to do, in one sentence. The entries print it without a traceback."""

    def __init__(self, sentence: str, *, exit_code: int = USAGE) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class NotMeasured(Problem):
    """The deployment cannot be measured: unreachable, refusing, or not an API at all."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, exit_code=NOT_MEASURED)
