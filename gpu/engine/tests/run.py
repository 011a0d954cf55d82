"""Runs all tests of this folder, or those whose modules are named."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

if __name__ == "__main__":
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else loader.discover(HERE)
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    if not result.testsRun:
        sys.exit("no tests were found")
    sys.exit(not result.wasSuccessful())
