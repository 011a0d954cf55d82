// Command gpu-check measures the PyTorch engine, and holds it to what is promised of it, on a machine that has a
// python3 with torch and transformers and else nothing: the engine is in the program, models are drawn at random.
//
// Glossary. A *part* is one measurement or check; parts run one after the other, each within its limit, and their
// outcomes are written after each. The *lab* is what they share: devices, one engine, one peer. The *peer* is a plain
// loop over transformers and torch (peer.py), measured in the same run with the same settings.
package main
