// Package jinja renders the chat templates of published models: the part of Jinja that such templates use, with the
// settings that Hugging Face's transformers gives it (trim_blocks, lstrip_blocks, loop controls, tojson as Python's
// json.dumps writes it, raise_exception, the tag generation). The result is the same to the byte.
//
// A template is code of others. It can only read the values that it is given: it has no access to files, to the
// network, to the time or to Go values. Its steps, its depth and its output are bounded. A block that the package does
// not know is an error of Parse, and a filter or test an error of the rendering that reaches it. One departure: a tuple
// is a list, and so it is written in square brackets.
//
//	text ── Parse ──▶ Template ── Render(values) ──▶ text
//
// Values are nil, bool, int, float64, string, []any and *Dict; From makes them of Go's usual JSON values.
package jinja
