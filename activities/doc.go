// Package activities holds the durable stages, one a file: each fetches the rows behind its
// references, calls one domain package, and commits what came out. It is the one place where
// store, schema and the domain packages meet.
//
// Glossary. A *slot* is an engine and what is resident in it; a worker's PyTorch engines are a *pool*, one for each run. A *draft* is a stage's output
// before its commit. To *adopt* is to return what an earlier attempt has committed, doing no
// work. A *verdict* (a wrong answer, a program that fails) is data; breakage is an error.
package activities
