// Package calc is integer arithmetic with a tool. It generates problems that a policy solves by writing Python. A noisy
// scripted teacher demonstrates how to solve them, often with faults.
//
// Glossary. An *expression* is a tree of operands and the operators + − × ÷ // %. By construction ÷ leaves no
// remainder; // and % are Python's floor division and remainder. The *level* is the number of operands, 2 to 4. A
// *phrasing* is one way to word an expression: in symbols, in words, or as a *sequence* of steps ("Start with 7, add 5,
// multiply by 3."). The expression identifies the problem: the problem's id is a digest of the canonical Python source
// and does not depend on the phrasing. One eighth of all ids is *held out* from training, the same eighth for every
// seed.
//
// How problems are drawn: the number of digits of each operand is 1 to 4, with equal probability. Each operator and
// each phrasing is equally likely. The shape of the tree is uniform among those that the phrasing and an exact division
// allow. An exact division occurs at most once, and its divisor is a single number. The last operand of its dividend
// has as many digits as the divisor, because only then can quotients without remainder exist while all numbers of
// digits are equally likely.
package calc
