"""The command line: `compositegp forecast`, `regress`, `analyze`, `stream`, `reproduce` and `info`."""

import sys


def main() -> int:
    """Run the command line of this process; the exit code is that of `compositegp.cli.app.main`.

    Nothing else is imported before: Ctrl-C while modules are imported ends with the exit code 130, not in a traceback.
    """
    try:
        from compositegp.cli.app import main as run

        return run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
