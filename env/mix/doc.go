// Package mix is an environment that consists of other environments, its parts. A recipe names the parts with their
// weights and settings, and each draw comes from one of them.
//
// Glossary. A *part* is an environment with its settings, a *weight* and a *label*, by which the record names it. The
// *share* of a part is its weight over the sum of all weights.
//
//	[]Part ─ Combine → Declaration ─ Open → Environment ─ Task(Draw) → the part's task, with Task.Part
//
// The part of a draw follows from the seed and the place of the draw alone (shares.go), so tasks have random access. A
// part sees its own draws as consecutive places, so that an environment with a list of tasks uses each of them once
// before it repeats any. A state begins with the label of its part.
//
// Combine refuses parts that cannot share a policy's prompts, reward or tools.
package mix
