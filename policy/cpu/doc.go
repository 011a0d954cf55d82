// Package cpu is the Engine that runs a decoder on the CPU: RMSNorm, rotary embedding, grouped-query attention and
// SwiGLU. Architectures differ in attention: Qwen3 norms queries and keys per head (Yang et al. 2025, "Qwen3 Technical
// Report", §2), Qwen2 adds biases to queries, keys and values, Llama and Mistral do neither. It computes what
// transformers' classes compute in float32, up to rounding.
//
// Glossary. Token rows are *packed*: sequences follow each other without padding. A *chunk* is a run of
// whole sequences that goes through all layers at once, small enough for its intermediate results to stay in
// cache. A *part* is the fixed share of one goroutine: rows are dealt to parts by their count and sizes alone,
// each part adds into its own gradient, and parts are summed in order, so that results depend on the inputs, the
// number of threads and the BLAS library, never on timing. *Kept* activations are, per layer: its input, the
// projections before their norms, the log-sum-exp of each attention row, the attention output, the middle of the
// residual stream, gate and up. The backward pass computes everything else again, because it is cheap. A *live* row
// is one that still generates. A *lot* is a part's work in one decoding step: some of the live rows or, if there are
// few rows and many weights, some of each matrix's columns. A *stem* is the beginning that some rows of a forward pass
// share, and their *leaves* are the rest of each of them.
//
// A *critic* is the same decoder with a *value head* (hidden → 1, with bias) after the final norm. Its output head is
// not computed.
//
// Memory, for P parameters of a role in float32: 4P bytes once loaded. The first Backward adds 4P per thread (each
// part's own gradient), the first Step 8P (AdamW's moments), the first Generate with the own kernels 4P (the weights
// in the order in which the kernels read them). All of it stays until the role is loaded again. Roles share nothing: on
// two threads a policy that trains and generates holds 24P, a reference 4P, and a critic that trains 20P.
// Each role also keeps the activations of its largest batch for the next one (Discard frees them). Load and Save hold
// one more copy of what they read or write while they run. A role that is never loaded costs nothing. Blocks of 4 MiB
// or more use huge pages if the system has them.
//
// Shapes in comments: n tokens of a chunk, H hidden, Q query width (heads × head dimension D), K key width, F FFN,
// V vocabulary. Weights are stored as in the checkpoint, [out, in] row-major, so y = x·Wᵀ.
package cpu
