// Package stage is the frame in which every stage runs, wherever it does: as an activity of its own or, by the Runner,
// within one activity for several stages. The frame adopts or commits, sends heartbeats, measures, and contains panics.
//
// Glossary. A *draft* is a stage's output before its commit. To *adopt* is to return what an earlier attempt has
// committed, without doing the work again. A stage *leases* the engine that it trains or samples with until it ends. An
// *Env* is what the stages of one activity share.
package stage
