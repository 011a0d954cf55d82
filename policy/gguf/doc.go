// Package gguf writes a policy as one GGUF file, which llama.cpp and the programs built on it load, and reads the files
// of others as policies (Open).
//
// Source: the specification of GGUF version 3 (ggml, docs/gguf.md). A file is a header, *entries* (named values:
// the model's sizes and its tokenizer), the *layout* of the tensors, and their data. Numbers are little-endian, and the
// data of each tensor begins at a multiple of 32 bytes. Sizes of a tensor are listed from the fastest to the slowest,
// the reverse of safetensors.
//
// Other programs *quantise* weights: a *block* of them shares a scale. Such weights are read into float32. For the
// architecture llama, llama.cpp has the rows of queries and keys in another order than checkpoints.
//
// Matrices are written as F32, F16 or BF16; vectors (the norms' weights) are always F32, which llama.cpp expects. The
// tokenizer is written as a byte-level BPE vocabulary.
package gguf
