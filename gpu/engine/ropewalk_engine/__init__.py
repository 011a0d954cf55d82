"""A trainer engine: language models on devices, served over a Unix socket (PROTOCOL.md).

Glossary. A *role* names one of the models held at once. A *row* is one sequence of token ids. A *pack* is several rows
one after another, computed in one pass without padding. A *kept pass* is a forward pass whose graph awaits its
cotangents. *Masters* are the float32 weights that the optimiser moves, whatever type the model computes in. A *rank*
is one process of the engine; rank 0 speaks with the host.
"""

PROTOCOL = 1
