// Package tokenizer maps text to token ids and back without losing a byte.
//
// Glossary. A *byte token* is one of the 256 ids 0…255, one for each byte value. A *merged token* stands for two tokens
// that follow each other within a *word* (wordsOf); merged tokens are trained (Train) and follow the byte tokens. An
// *added token* is a fixed string with its own id, after the others in the order given. Encoding scans from the left.
// At each position, the longest added token that starts there wins. The text between added tokens is split into words,
// and each word into byte tokens, to which the merges are applied in their order. The *byte-level alphabet* has a
// printable character for each byte, as in Hugging Face's ByteLevel components. It appears only in the files.
//
// The files are an ordinary Hugging Face tokenizer: a BPE model over the byte-level alphabet, a ByteLevel pre-tokenizer
// and decoder, and the added tokens. The added tokens are written as "not special", so that decoding returns the whole
// text.
//
// A *published* tokenizer (Published) is one that other people trained. It is read from its tokenizer.json or from GGUF
// metadata. Its ids may be in any order, and a *pattern* splits its words.
package tokenizer
