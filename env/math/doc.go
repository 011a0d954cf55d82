// Package math supplies questions of mathematics from files: a question, its gold answer and perhaps a level in each
// row. README.md describes the files and the settings.
//
// The package declares one environment under seven names. math, chat, qa and functions are for any file; in functions,
// a row brings what its calls may name, and the right calls are its gold. dapo_math, tir_math and rstar2_math are the
// names that the papers' presets use, each with the paper's prompt format.
//
// A row's answer is the gold, or a solution that ends in GSM8K's form: a line of "#### GOLD". The gold may be a number
// or an expression. Rewards compare answers with it (package rl/reward), with sympy if the recipe sets reward.symbolic.
package math
