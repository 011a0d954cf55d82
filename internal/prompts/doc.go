// Package prompts says which problems a step samples, and how its shards divide them.
//
// Glossary. The *stream* of training problems is a function of seed, step and index. A *round* is one sampling of a
// step's groups: dynamic sampling may ask for several, and each continues the group numbers of the round before. A
// *shard* is the groups that one rollout samples together. A problem is *solved* if all samples of the earlier steps
// solved it, and there were enough of them.
package prompts
