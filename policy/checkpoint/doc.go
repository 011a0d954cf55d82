// Package checkpoint reads and writes the folder that holds a policy: the layout of Hugging Face
// (config.json, generation_config.json, model.safetensors, the tokenizer's files), which other programs can
// load, plus optimizer.state and, for a critic, value_head.state. These two are safetensors files with names that other
// programs do not mistake for weights.
//
// Glossary. A *tensor* is a named row-major array of numbers; names are those of transformers' classes. A
// *base* is the model that an *adapter* changes. A *shape* fixes the sizes of the model, and so the list of its
// tensors. *Extra* files (the tokenizer's) are opaque bytes: read, kept and written back unchanged. The *digest* of a
// folder names its content: equal state gives equal bytes gives an equal digest. The *weights digest* covers the
// weights alone and no file names (WeightsDigest).
//
// value_head.state holds value_head.weight [1, hidden] and value_head.bias [1]; a folder with it is a
// critic's, one without it is not. model.safetensors is the same with and without it.
//
// adapter_config.json and adapter_model.safetensors hold a LoRA adapter, as peft writes it; model.safetensors is then
// the base, unchanged, and the optimiser's moments are those of the adapter and the value head alone.
//
// optimizer.state holds the optimiser's states as `STATE.NAME` (F32, shaped like the parameter; AdamW's are exp_avg and
// exp_avg_sq) and, in the header's metadata, `step`: the decimal count of steps taken.
package checkpoint
