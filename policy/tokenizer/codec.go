package tokenizer

// Codec maps text to token ids and back. A Tokenizer is the codec of models that this program makes, a Published one
// that of models that others have made. A codec is immutable and safe for concurrent use.
type Codec interface {
	// Encode returns the ids of text, in which added tokens are found.
	Encode(text string) []int32
	// Decode returns the bytes that ids stand for. It ignores an id outside the vocabulary.
	Decode(ids []int32) string
	// Check returns an error if an id is outside the vocabulary.
	Check(ids []int32) error
	// VocabSize is the number of ids: 0 ≤ id < VocabSize.
	VocabSize() int
	// ID returns the id of an added token.
	ID(added string) (int32, bool)
	// Added returns the added tokens.
	Added() []string
}

var (
	_ Codec = (*Tokenizer)(nil)
	_ Codec = (*Published)(nil)
)

// Read reads a tokenizer.json of this program or of others.
func Read(tokenizerJSON []byte) (Codec, error) {
	if t, err := Load(tokenizerJSON); err == nil {
		return t, nil
	}
	t, err := LoadPublished(tokenizerJSON)
	if err != nil {
		return nil, err
	}
	return t, nil
}
