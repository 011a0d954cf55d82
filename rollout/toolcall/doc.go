// Package toolcall reads and writes calls of tools as models write them. A Form is one way to write calls; each has a
// file. What a model has learnt shows in its chat template: protocol.Chat renders known calls, and looks for the
// form that reads them back. Runs, evaluations and the server read responses with the same forms.
//
//	response ── Form.Read(tools) ──▶ reasoning, content, calls, or a call that is cut
//
// Glossary. A *mark* is a text that a call begins with. A *bare* call begins a response without a mark. An *open* call
// was begun and has no end: it is neither run nor part of the answer. A *fault* says why a call that has an end cannot
// be read. Arguments are a JSON object. Some forms write them as JSON, some as literals of a language, some as raw
// text, whose type the tool's schema tells: a text that does not fit its declared type stays a text.
package toolcall
