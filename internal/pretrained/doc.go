// Package pretrained reads published models. Take brings one into the form of this program's checkpoints: a Hugging
// Face folder is taken as it is, and a GGUF file is converted. Read then reads what a run needs besides the weights:
// the sizes, the tokenizer, and the chat template with the special tokens that it writes. Both refuse by name what the
// program does not support.
//
//	folder, or *.gguf ── Take ──▶ folder of a checkpoint ── Read ──▶ Model
package pretrained
