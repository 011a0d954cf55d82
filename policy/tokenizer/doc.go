// Package tokenizer maps text to token ids and back without ever losing a byte.
//
// Glossary. A *byte token* is one of the 256 ids 0…255, one per byte value. An *added token*
// is a fixed string with an id of its own, from 256 on in the order given to New. Encoding scans
// from the left: at each position the longest added token that starts there wins, and a byte
// token stands for the byte otherwise. The *byte-level alphabet* is the printable character that
// Hugging Face's ByteLevel components write for each byte; it appears in the files alone.
//
// The files are an ordinary Hugging Face tokenizer: a BPE model over the byte-level alphabet
// without merges, a ByteLevel pre-tokenizer and decoder, and the added tokens. They are written
// as "not special", so that decoding gives back the whole text.
package tokenizer
