package calc

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"github.com/ropewalk/ropewalk/env"
)

// The bounds of levels and of the number of digits of an operand.
const (
	MinLevel  = 2
	MaxLevel  = 4
	maxDigits = 4
)

// valueTries bounds how often values are drawn for one choice of digits. Most choices succeed at the first try. The
// bound is for the rare choice without a solution, such as a divisor that is a difference of equal operands.
const valueTries = 300

// Generate draws one problem with level operands, which may be a training or a held-out problem. It panics unless
// MinLevel ≤ level ≤ MaxLevel.
func Generate(rng *rand.Rand, level int) env.Task {
	if level < MinLevel || level > MaxLevel {
		panic("calc: level " + strconv.Itoa(level) + " is out of range")
	}
	phrase := phrasings[rng.IntN(len(phrasings))]
	ops, exact := drawOperators(rng, level-1)
	if phrase.isSequence() {
		exact = divideEarlier(ops, exact)
	}
	tree := drawShape(rng, ops, phrase.isSequence())
	for {
		digits := make([]int, level)
		for i := range digits {
			digits[i] = 1 + rng.IntN(maxDigits)
		}
		if value, ok := drawValues(rng, tree, digits, exact); ok {
			return problem(tree, value, level, phrase)
		}
	}
}

func problem(tree *node, value int64, level int, phrase phrasing) env.Task {
	expression := tree.python()
	return env.Task{
		ID:     problemID(expression),
		Level:  level,
		Text:   phrase.word(tree),
		Answer: strconv.FormatInt(value, 10),
		Spec:   expression,
	}
}

// problemID is the digest of the canonical expression: 16 hexadecimal digits.
func problemID(expression string) string {
	sum := sha256.Sum256([]byte("calc\n" + expression))
	return hex.EncodeToString(sum[:8])
}

// drawOperators draws n operators with at most one ÷. Each operator is equally likely at each place. exact is the place
// of the ÷, or −1.
func drawOperators(rng *rand.Rand, n int) (ops []operator, exact int) {
	exact = -1
	// n of the six numbers are places, so each place has a ÷ with probability one sixth.
	if place := rng.IntN(operators); place < n {
		exact = place
	}
	others := []operator{opAdd, opSub, opMul, opFloor, opMod}
	ops = make([]operator, n)
	for i := range ops {
		ops[i] = others[rng.IntN(len(others))]
		if i == exact {
			ops[i] = opExact
		}
	}
	return ops, exact
}

// divideEarlier moves the ÷ of a sequence before the floor divisions and remainders that directly precede it, because
// their results can seldom be divided exactly. It returns the new place.
func divideEarlier(ops []operator, exact int) int {
	for exact > 0 && ops[exact-1] > opExact {
		ops[exact-1], ops[exact] = ops[exact], ops[exact-1]
		exact--
	}
	return exact
}

// drawShape draws a tree over the operators in order. The draw is uniform among the shapes whose ÷ can always be made
// exact. A sequence has only one shape.
func drawShape(rng *rand.Rand, ops []operator, sequence bool) *node {
	if sequence {
		return chain(make([]int64, len(ops)+1), ops)
	}
	all := shapes(ops)
	allowed := all[:0]
	for _, n := range all {
		if d := n.exactDivision(); d == nil || d.fits() {
			allowed = append(allowed, n)
		}
	}
	return allowed[rng.IntN(len(allowed))]
}

// shapes returns every tree over the operators in order. The trees share no nodes.
func shapes(ops []operator) []*node {
	if len(ops) == 0 {
		return []*node{{}}
	}
	var all []*node
	for root := range ops {
		for i := range shapes(ops[:root]) {
			for j := range shapes(ops[root+1:]) {
				all = append(all, &node{left: shapes(ops[:root])[i], op: ops[root], right: shapes(ops[root+1:])[j]})
			}
		}
	}
	return all
}

// leaves returns the operands from left to right.
func (n *node) leaves() []*node {
	if n.isLeaf() {
		return []*node{n}
	}
	return append(n.left.leaves(), n.right.leaves()...)
}

// drawValues sets the operands to random values with the given numbers of digits, so that no divisor is zero and ÷
// leaves no remainder.
func drawValues(rng *rand.Rand, tree *node, digits []int, exact int) (int64, bool) {
	leaves, division := tree.leaves(), tree.exactDivision()
	if exact >= 0 {
		// The place of ÷ is the place of the last operand of its dividend. Its divisor is the next operand.
		digits[exact] = digits[exact+1]
	}
	for range valueTries {
		for i, leaf := range leaves {
			leaf.value = drawOperand(rng, digits[i])
		}
		if division != nil && !fitDividend(division, leaves[exact], digits[exact]) {
			continue
		}
		if value, err := tree.eval(); err == nil {
			return value, true
		}
	}
	return 0, false
}

// drawOperand draws a number with the given number of digits, never zero.
func drawOperand(rng *rand.Rand, digits int) int64 {
	low := powerOfTen(digits - 1)
	return low + rng.Int64N(9*low)
}

func powerOfTen(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
