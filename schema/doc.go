// Package schema defines the record: the rows of its tables, their Parquet and Arrow codec, the manifests that commit
// them, and the keys that everything is stored under.
//
// Glossary. A *row* is one line of a table. A *table* is a set of rows of one type, written as *shards*. A shard is one
// immutable file that is named by the digest of its bytes and holds rows of one table in canonical order. A *manifest*
// is the small JSON that commits a stage or one shard of it: what was made (shards, a checkpoint), from which inputs
// (manifests), by which code and with which config. A *part* is a shard's manifest that a stage manifest lists. A
// *place* says where in a run a manifest belongs: run, step, stage, try, turn, shard, generation. A *generation* counts
// replays of a stage: the first is 0. A *head* names the manifests that a step's update consumed. A *ref* is a key with
// the digest of the bytes under it. A *digest* is SHA-256 in lower-case hexadecimal.
//
// The file format, in short (rows.go is the table of fields):
//
//   - Parquet, zstd; dictionary on low-cardinality strings and token ids; byte-stream-split on
//     float columns only, because DuckDB refuses it on integers; a bloom filter on trajectory_id;
//     page index; row groups bounded in bytes.
//   - Lists are annotated LIST groups with non-null elements. logprobs, entropies and the lists of
//     token_outputs may be null as a whole for imported rows; no other list is ever null.
//   - The file's metadata holds ropewalk.table and ropewalk.schema_version. Every file has every
//     column. A later version may only add nullable columns and tables; a reader accepts every
//     version up to its own and refuses later ones, naming the version.
//   - The batch table is an Arrow IPC file with the same metadata and the same kinds of columns.
//   - Text that is not UTF-8 is stored with U+FFFD in place of each bad sequence (the token ids
//     hold the exact bytes); a byte that no reader can show never makes a shard unreadable.
//
// Encoding is deterministic: equal rows give equal bytes.
package schema
