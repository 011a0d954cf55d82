// Package sql puts DuckDB, in process, on the committed shards of runs: one view per table of the
// record, a table runs, and a table policies: run, step and policy_version, the digest of the
// checkpoint after each finished step. Step 0 is the policy that the first step began with.
//
// Glossary. A *view* shows a table's visible shards (see package analysis) with three columns in
// front: run, step (null for what was made before the first step) and gen. A *mapping* is the
// small table behind a view that says which cached file is which run's, step's and generation's
// shard; two runs may share a file, since equal bytes have one digest.
//
// Only the tables that a query mentions are fetched, into the cache, and DuckDB reads nothing but
// those local files: extensions are neither installed nor loaded, files outside the cache's folder
// and settings are out of reach, and statements other than reading ones are refused. The package
// is a package of its own because DuckDB is a large C++ library that takes a while to link.
package sql
