// Package inspect says what is in one file of the record, whatever kind of file it is: a Parquet
// shard, a training batch, a manifest, a head, another JSON document, a checkpoint's tensors.
//
// A file's kind is what its name says; where the name says none, what its first bytes say. A file
// that is not what it claims to be, or whose bytes do not have the digest that its name holds, is
// damaged.
package inspect
