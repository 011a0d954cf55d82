// Package calc is tool-integrated integer arithmetic: problems that a policy solves by writing
// Python, and the noisy scripted teacher that shows it how, more or less.
//
// Glossary. An *expression* is a tree of operands and the operators + − × ÷ // %; ÷ divides
// without remainder by construction, // and % are Python's floor division and remainder. The
// *level* is the number of operands, 2 to 4. A *phrasing* is one way to word an expression: in
// symbols, in words, or as a *sequence* of steps ("Start with 7, add 5, multiply by 3."). The
// problem is the expression: its id is a digest of the canonical Python source, whatever the
// phrasing, and an eighth of all ids is *held out* from training, the same for every seed.
//
// How problems are drawn: the number of digits of each operand is 1 to 4 with equal chance, each
// operator and each phrasing is equally likely, and the shape of the tree is uniform among those
// that the phrasing and an exact division allow. An exact division has a single number as its
// divisor, occurs at most once, and takes its last dividend operand with as many digits as the
// divisor, because only then can quotients without remainder exist for equal chances of digits.
package calc
