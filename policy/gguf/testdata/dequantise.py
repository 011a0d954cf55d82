"""Reads the tensors of a GGUF file with the package gguf.

stdin: the path. stdout: for each tensor, the SHA-256 of its numbers as float32.
"""
import hashlib
import json
import sys

import gguf
import numpy as np

reader = gguf.GGUFReader(json.load(sys.stdin))
json.dump({
    t.name: hashlib.sha256(np.ascontiguousarray(gguf.dequantize(t.data, t.tensor_type), "<f4").tobytes()).hexdigest()
    for t in reader.tensors
}, sys.stdout)
