"""Starts the engine from this file's folder. `python -I main.py` sees none of the user's other packages."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from ropewalk_engine.cli import main  # noqa: E402  (the path comes first)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
