// Package export writes a run's trajectories for other programs.
//
// Glossary. An *episode* is one trajectory with everything recorded of it. A *format* is one way to
// write episodes: openai (a conversation a line), sft (a prompt and its completion a line), parquet
// (one flat table, a row an episode). A *conversation* is an episode as messages in OpenAI's chat
// format: unchanged for an imported conversation; for a sampled trajectory, built from its prompt,
// responses and tool calls. *Positive* episodes have a reward above 0; *kept* ones
// entered the update after resampling.
//
// Only visible steps are written (see package analysis), in canonical order: the same record gives the same bytes.
package export
