"""Entry: `python -m kimi_eval` is the command `kimi-eval`."""

from kimi_eval.cli import main

main()
