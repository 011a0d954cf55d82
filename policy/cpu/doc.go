// Package cpu is the Engine that runs a Qwen3-architecture decoder on the CPU: RMSNorm, rotary embedding,
// grouped-query attention with per-head query and key norms, SwiGLU, no biases (Yang et al. 2025, "Qwen3
// Technical Report", §2), numerically what transformers' Qwen3ForCausalLM computes in float32.
//
// Glossary. Token rows are *packed*: sequences lie behind each other without padding. A *chunk* is a run of
// whole sequences that goes through all layers at once, small enough for its intermediate results to stay in
// cache. A *part* is the fixed share of one goroutine: rows are dealt to parts by their count and sizes alone,
// each part adds into its own gradient, and parts are summed in order, so that results depend on the inputs, the
// number of threads and the BLAS library, never on timing. *Kept* activations are, per layer: its input, the
// projections before their norms, the log-sum-exp of each attention row, the attention output, the middle of the
// residual stream, gate and up; everything else backward makes again, being cheap. A *live* row is one that still
// generates. A *lot* is a part's work in one decoding step: some of the live rows, or, where rows are few and
// weights many, some of each matrix's columns.
//
// A *critic* is the same decoder with a *value head* (hidden → 1, with bias) after the final norm, and nothing of
// the output head is computed for it.
//
// Memory, for P parameters of a role in float32: 4P bytes once loaded. The first Backward adds 4P per thread (each
// part's own gradient), the first Step 8P (AdamW's moments), the first Generate with the own kernels 4P (the weights
// in the order in which these read them); all stay until the role is loaded anew. Roles share nothing: on two
// threads a policy that trains and generates holds 24P, a reference 4P, and a critic that trains 20P of its own.
// Each role also keeps its largest batch's activations for the next (Discard frees those). Load and Save hold one
// copy more, of what they read or write, while they run. A role that is never loaded costs nothing. Pieces from 4 MiB
// on lie on huge pages where the system has them.
//
// Shapes in comments: n tokens of a chunk, H hidden, Q query width (heads × head dimension D), K key width, F FFN,
// V vocabulary. Weights are stored as in the checkpoint, [out, in] row-major, so y = x·Wᵀ.
package cpu
