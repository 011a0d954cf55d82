// Package serve answers requests of OpenAI's API with a model on one of the program's own engines: completions, chat
// completions with tools, log-probabilities and token ids, whole or streamed.
//
// Glossary. A *request* asks for *choices*: one or more responses to one or more prompts. Each choice is a *row* of the
// engine's batch (policy.Batch). Rows join and leave between steps: the *scheduler* is the one goroutine that owns the
// batch. A request's *inbox* collects what the batch brings for its rows, however slowly its client reads. The
// *weights* are named by the digest of their checkpoint folder; new ones can be loaded between requests
// (Options.AllowLoad).
//
//	HTTP ─ parse ─▶ rows ─ queue ─▶ scheduler ─ Add, Step ─▶ batch
//	HTTP ◀─ text, tool calls, JSON or events ─ inbox ◀─ events ─┘
//
// A row's tokens follow from its prompt's ids, its seed and the weights, as Sampler.Generate returns them. They do not
// depend on other requests.
package serve
