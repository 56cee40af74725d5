"""``python -m attnlab.editions`` is ``attnlab``."""

import sys

from attnlab.editions.command import main

if __name__ == "__main__":
    sys.exit(main())
