// Package export writes a run's trajectories for other programs.
//
// Glossary. An *episode* is one trajectory with everything recorded of it. A *format* is one way to
// write episodes: openai (a conversation a line), sft (a prompt and its completion a line), parquet
// (one flat table, a row an episode). A *conversation* is an episode as messages in OpenAI's chat
// format: those of an imported conversation as they came; those of a sampled trajectory made of its
// prompt, responses and tool calls. *Positive* is what has a reward above 0, *kept* what resampling
// let into the update.
//
// Only what heads make visible is written (see package analysis), step by step in canonical order:
// the same record gives the same bytes.
package export
