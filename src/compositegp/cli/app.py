"""The command line: one verb for each job."""

import argparse
import os
import sys
import warnings
from typing import Any

from numpy.linalg import LinAlgError

_VERBS = {
    "forecast": "forecast a time series from a file",
    "regress": "learn from one table and predict another",
    "analyze": "say what an approximation costs on a table, and which to use",
    "stream": "forecast while new rows arrive",
    "reproduce": "run the paper's experiments",
    "info": "tell what is installed",
    "completion": "print a script for shell completion",
}
_EXAMPLES = {
    "forecast": """examples:
  compositegp forecast nox.csv --time timestamp --target nox --horizon 24h --log --out forecast/
  compositegp forecast nox.csv.gz --time timestamp --target nox --horizon 24h --log --backtest 30 --report
  compositegp forecast load.parquet --time t --target load --horizon 48 --season day --season week --save load.cgp""",
    "regress": """examples:
  compositegp regress train.csv --target y --predict test.csv --out predictions.csv
  compositegp regress train.parquet --target price --predict test.csv --log --level 0.9 --json""",
    "analyze": """examples:
  compositegp analyze train.csv --target y
  compositegp analyze train.csv --target y --predict test.csv --tolerance 0.01 --budget 60""",
    "stream": """examples:
  compositegp stream nox.cgp new.csv --follow > forecasts.jsonl
  tail -f sensor.log | compositegp stream nox.cgp --segment 24""",
    "reproduce": """examples:
  compositegp reproduce all --out reproduction/
  compositegp reproduce timeseries""",
    "info": "example:\n  compositegp info --json",
    "completion": "example:\n  source <(compositegp completion bash)",
}


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    import importlib

    from compositegp import __version__

    parser = argparse.ArgumentParser(
        prog="compositegp",
        description="Gaussian-process regression and forecasts for large data, with error bars.",
        epilog="Exit codes: 0 done, 1 the data or the numerics do not allow it, 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"compositegp {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for name, what in _VERBS.items():
        module = importlib.import_module(f"compositegp.cli.{name}")
        verb = verbs.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=_EXAMPLES[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        verb.add_argument("--json", action="store_true", help="print results as JSON")
        verb.add_argument("--jobs", type=int, default=-1, help="processes to use; all cores by default")
        verb.set_defaults(run=module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        parser = build_parser()
    except ImportError as error:
        print(f"error: {error.name} is not installed: pip install 'compositegp[cli]'", file=sys.stderr)
        return 1
    from compositegp.cli.errors import CommandError
    from compositegp.cli.output import Output

    arguments = parser.parse_args(argv)
    output = Output(arguments.json)
    warnings.showwarning = _note
    try:
        arguments.run(arguments, output)
        output.finish()
        sys.stdout.flush()
    except (CommandError, ImportError, ValueError, LinAlgError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read is gone; nothing more to say
        return 0
    except (OSError, MemoryError) as error:
        print(f"error: {error or 'not enough memory'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _note(message: Any, category: Any, *_: Any, **__: Any) -> None:
    print(f"note: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
