// Package record finds what runs have committed to the store of a worker. It needs no recipe, engine or sandbox.
//
// Glossary. The manifests of a shard's turns and tool calls form a *chain*: each names the one before it. A shard's
// *past* is the end of its chain.
package record
