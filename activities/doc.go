// Package activities holds the durable stages, one in each file. Each stage fetches the rows behind its references,
// calls one domain package, and commits the result. Only this package brings store, schema and the domain packages
// together.
//
// Glossary. A worker's *records* are what runs have committed to its store. A stage *leases* the engine that it trains
// or samples with from the worker's pool (internal/enginepool) until it ends. A *draft* is a stage's output before its
// commit. To *adopt* is to return what an earlier attempt has committed, without doing the work again. A *verdict* (a
// wrong answer, a program that fails) is data; breakage is an error. A *verifier* gets verdicts on a shard's answers
// before the shard's stages ask for them.
package activities
