"""Reads a JSON list of pairs of texts and writes the list of their token_set_ratio by PyPI's thefuzz."""

import json
import sys

from thefuzz import fuzz

json.dump([fuzz.token_set_ratio(a, b) for a, b in json.load(sys.stdin)], sys.stdout)
