"""``python -m compositegp`` is the command line."""

import sys

from compositegp.cli import main

sys.exit(main())
