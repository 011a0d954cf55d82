// Package analysis reads the record: what a run did, how well and how fast.
// It reads committed manifests and shards through store and never writes.
//
// Glossary. The *visible* part of a run is what its heads name: a step's tables can be read once the step has a head,
// in the generations that its update consumed. The stage manifests before the first step, evaluations and timings need
// no head; schema/stages/visible.json lists where each table is read. A *merged copy* (internal/compaction) is read in
// place of the shards that it copies. Everything else is not read: steps in progress, replays (unless asked for), and
// *orphans*, the shards of superseded attempts. The *window* of a run is the time from its first selection
// of prompts to its last publication; *RL seconds* are the window without its evaluations, and *orchestration* is the
// part of them in which no activity runs.
//
//	Record ── Visible → Shards → rows      what a run holds
//	       ├─ Runs, Overview, Step         what commands print
//	       └─ Figures                      how much and how fast
//
// Subpackages: verify says whether the record is complete and sound, report writes the HTML page, sql queries the
// visible shards with DuckDB, compare compares runs and generations of a step, export writes trajectories and
// checkpoints for other programs, metrics computes what TensorBoard, W&B and MLflow show, inspect shows one file.
package analysis
