package tokenizer

import "slices"

// JSON returns the tokenizer.json of a vocabulary, which Hugging Face's libraries read with the same ids: for
// vocabularies that come from another kind of file.
func (v Vocabulary) JSON() []byte {
	type part = map[string]any
	level := part{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	var parts []any
	if v.Digits {
		parts = append(parts, part{"type": "Digits", "individual_digits": true})
	}
	if v.Pattern != gpt2Pattern {
		parts = append(parts, part{"type": "Split", "pattern": part{"Regex": v.Pattern}, "behavior": "Isolated",
			"invert": false})
		level["use_regex"] = false
	}
	added := []addedJSON{}
	for _, id := range v.Added {
		added = append(added, addedJSON{ID: id, Content: v.Tokens[id], Special: !slices.Contains(v.Shown, id)})
	}
	vocab := make(map[string]int32, len(v.Tokens)) // added tokens included: others would get new ids
	for id, s := range v.Tokens {
		if s != "" {
			vocab[s] = int32(id)
		}
	}
	merges := make([]any, len(v.Merges))
	for i, m := range v.Merges {
		merges[i] = m[:]
	}
	var normalizer any
	if v.NFC {
		normalizer = part{"type": "NFC"}
	}
	return encodeJSON(part{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": normalizer,
		"pre_tokenizer":  part{"type": "Sequence", "pretokenizers": append(parts, level)},
		"post_processor": nil,
		"decoder":        part{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": part{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "ignore_merges": v.WholeWords,
			"vocab": vocab, "merges": merges},
	})
}
