// Package analysis reads the record: what a run did, how well, how fast, and whether all of it is
// still there. It reads committed manifests and shards through store and never writes.
//
// Glossary. What is *visible* of a run is what its heads name: a step's tables are seen once the
// step has a head, in the generations that its update consumed. Beside the heads are visible, in
// generation 0, the stage manifests before the first step, evaluations and timings. Everything
// else is not read: steps in progress, replays, and *orphans*, the shards of attempts that lost.
// A *fault* is something that the record promises and does not keep. The *window* of a run is the
// time from its first selection of prompts to its last publication; *RL seconds* are the window
// less the evaluations in it, and *orchestration* is the part of them in which no activity
// executes.
//
// The subpackage diff compares two generations of a step, sql puts DuckDB on the visible shards, cache keeps fetched objects on the local
// disk, recordtest makes small runs for tests.
package analysis
