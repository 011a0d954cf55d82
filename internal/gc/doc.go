// Package gc finds and deletes orphans: data that no manifest names and that no future manifest can name.
//
// Glossary. An *orphan* is a data shard or checkpoint file that no manifest in the store names: an attempt that lost
// left it. Its place is *settled* when every manifest that could name it has been committed. A *leftover* is an upload
// whose parts were never completed, or an object of a probe of the store.
//
//	list all → read every manifest → orphans that are settled and old (the plan)
//	delete:  list again → read the new manifests → stat each orphan → delete it if it is still an orphan and still old
//
// Only shards and checkpoint files are ever deleted, with probes and uploads. Manifests, heads, the catalogue, notes of
// pruned checkpoints and of tool calls, and keys that are not the record's stay. A manifest that cannot be read ends
// the collection before anything is deleted, because the keys that it names are not known.
//
// # Why no key that a manifest names is deleted while workers run
//
// A manifest names only shards under the data key of its own place (schema checks this). Its key is taken once, by
// put-if-absent, and it never changes. So only a manifest that has not been committed yet, of the same run or warm
// start, step, generation and table, can come to name a key. A place is settled if there is no such manifest:
//
//   - A warm start has one manifest. Once it is committed, what it does not name is never named.
//   - A step with a head is done: all its stages have committed, in the generations up to the head's, and so have the
//     measured times of its calls and those that its shards record themselves. The step's own measured times follow the
//     head and are settled once their own manifests exist.
//   - A later generation belongs to a replay; a stage of it is settled once its stage manifest exists.
//   - A checkpoint's files are put by their step's update, before the step's head; those of the first critic by the
//     run's warm start. A file that a later checkpoint shares (`at`) is already named by an earlier manifest.
//   - A run that `ropewalk delete` has deleted (its audit log says so), and that has no recipe and no request, has no
//     manifests to come.
//   - Before the first step, evaluation and measured times are settled with their manifests. Recipes are never settled,
//     because an amendment may have the same bytes as one that lost.
//
// Only an attempt that its workflow has given up and that is still running can write into a settled place. Its commit
// fails if its place is taken. If the place is not taken (a step that was retried in another generation), its objects
// are as young as the attempt, because every writer puts its objects again even if they exist, and Store.Put renews
// their age. The minimum age must therefore exceed the longest time that an attempt takes from its first put to its
// commit (workflows.LongestStage), unless a person allowed more. The default minimum age is a day, and the command
// refuses less than that longest time while workers are there. The age is read a second time directly before a delete.
// Any time may pass between the plan and the second listing: what is committed between them is read.
//
// Unfinished also collects places that are not settled, by age alone. An attempt of a resumed run could put the bytes
// of an old orphan again between the second check and the delete, and commit their name. Use Unfinished only on a store
// on which no worker runs.
package gc
