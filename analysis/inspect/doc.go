// Package inspect shows the contents of one file of the record, of any kind: a Parquet
// shard, a training batch, a manifest, a head, another JSON document, a checkpoint's tensors.
//
// A file's kind follows from its name, or from its first bytes if the name tells nothing. A file is damaged if its
// contents are not of that kind or do not have the digest in its name.
package inspect
