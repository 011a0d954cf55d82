// Package experiment compares recipes: it declares trials in one file, expands them, and says from their outcomes which
// arm does better.
//
// Glossary. An *experiment* is a question to several arms, fixed in a file (File) before the first trial. An *arm* is a
// recipe with settings; a *grid* multiplies arms by values of fields, and a *point* is one choice of these values. A
// *trial* is an arm at a point with one seed: one run, named after the digest of its recipe. So a trial that is done is
// not repeated, and two experiments share the trials that they have in common. An *outcome* is one number of a trial,
// made from a *curve*: values over the trial's steps that SQL reads from the record. An *axis* counts what a trial
// spends, such as tokens, and the *budget* says up to which amount trials are compared. A *contrast* is the difference
// of an outcome between two arms, paired by seed. A *hold* is a step after which trials wait for the stop rule.
//
//	Parse: YAML → File → Expand → Trial …
//	Result (of a trial, from its record or from a file) → Compare → Contrast, summary
package experiment
