"""``python -m compositegp`` is the command line."""

import sys

from compositegp.cli.main import main

sys.exit(main())
