// Package grading scores trajectories by a recipe's reward. Rewards are functions of the record: of trajectories, of
// the transitions of interactive environments, and of committed gradings.
//
// Glossary. The *comparison* of an answer with its gold is exact: strings, values and lists. A *question* is a pair
// that this comparison finds different and that a symbolic comparison may find equal. A *grading* is the committed
// verdict on a question; the sandbox gives it. A trajectory is *excluded* if it has no reward because something broke.
package grading
