// Command gpu-check measures the PyTorch engine and checks its promises on a machine that has only a python3 with torch
// and transformers. The program contains the engine, and models have random weights.
//
// Glossary. A *part* is one measurement or check. Parts run one after the other, each within its limit, and the report
// is written after each (internal/bench, whose harness this is). The *lab* is what parts share: devices, one engine,
// one peer. The *peer* is a plain loop over transformers and torch (peer.py), measured in the same run with the same
// settings.
package main
