"""``python -m compositegp`` is the command line."""

import sys

from compositegp.cli.app import main

sys.exit(main())
