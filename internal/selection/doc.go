// Package selection decides which of a step's trajectories the update learns from. It applies the chain of
// rl/resample to the rows of the record.
//
//	rewards, excluded ── Rows ──▶ rows ── Facts.Fill ──▶ Select ──▶ selection rows
//
// Glossary. A trajectory is *excluded* if it has no reward: something broke on it, or its shard was skipped. It is
// *kept* if it is in the update's batch, and *masked* if it is kept and a filter took its tokens out of the loss. The
// *chain* is the order of resampling steps that a recipe asks for; its last link are the filters.
package selection
