// Package tokenizer maps text to token ids and back without losing a byte.
//
// Glossary. A *byte token* is one of the 256 ids 0…255, one for each byte value. An *added token* is a fixed string
// with its own id, from 256 on in the order given to New. Encoding scans from the left. At each position, the longest
// added token that starts there wins; otherwise a byte token represents the byte. The *byte-level alphabet* has a
// printable character for each byte, as in Hugging Face's ByteLevel components. It appears only in the files.
//
// The files are an ordinary Hugging Face tokenizer: a BPE model over the byte-level alphabet without merges, a
// ByteLevel pre-tokenizer and decoder, and the added tokens. The added tokens are written as "not special", so that
// decoding returns the whole text.
package tokenizer
