// Package episodes holds the stages that take a shard from its prompts to its trajectories, one by one or, in mode
// interleaved, within one activity.
//
// Glossary. A *flow* takes the episodes of a shard to their ends while the stages commit their turns. A *segment* keeps
// finished turns that are not committed yet.
package episodes
