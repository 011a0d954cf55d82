"""Starts the engine from the folder this file lies in; `python -I main.py` sees nothing else of the user's."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from ropewalk_engine.cli import main  # noqa: E402  (the path comes first)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
