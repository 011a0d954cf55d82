package calc

import "strings"

// phrasing is one way to word an expression.
type phrasing struct {
	before, after string
	// symbols holds the text of each operator; nil for a sequence.
	symbols *[operators]string
}

var (
	inSymbols = [operators]string{" + ", " - ", " × ", " ÷ ", " // ", " % "}
	inWords   = [operators]string{" plus ", " minus ", " times ", " divided by ", " floor-divided by ", " modulo "}
	// inSteps holds the text of each step of a sequence.
	inSteps = [operators]string{", add ", ", subtract ", ", multiply by ", ", divide by ", ", floor-divide by ",
		", reduce modulo "}
)

const sequenceStart = "Start with "

// phrasings holds every way to word a problem, all equally likely.
var phrasings = []phrasing{
	{"What is ", "?", &inSymbols},
	{"Compute ", ".", &inSymbols},
	{"", " = ?", &inSymbols},
	{"Work out ", ".", &inWords},
	{"Find the value of ", ".", &inWords},
	{sequenceStart, ".", nil},
}

func (p phrasing) isSequence() bool { return p.symbols == nil }

// word renders the tree. A sequence needs a chain.
func (p phrasing) word(n *node) string {
	if !p.isSequence() {
		return p.before + n.render(func(o operator) string { return p.symbols[o] }) + p.after
	}
	return p.before + n.renderChain(func(o operator) string { return inSteps[o] }) + p.after
}

// renderChain renders a chain step by step, without parentheses.
func (n *node) renderChain(step func(operator) string) string {
	if n.isLeaf() {
		return n.python()
	}
	return n.left.renderChain(step) + step(n.op) + n.right.python()
}

// isSequence reports whether a problem's text is worded as a sequence.
func isSequence(text string) bool { return strings.HasPrefix(text, sequenceStart) }

// Added lists the fixed strings of problems and of usual code. Each of them is one token.
func Added() []string {
	var added []string
	for _, p := range phrasings {
		for _, s := range []string{p.before, p.after} {
			if len(s) > 1 {
				added = append(added, s)
			}
		}
	}
	added = append(added, inSymbols[:]...)
	added = append(added, inWords[:]...)
	added = append(added, inSteps[:]...)
	added = append(added, "//", openPrint, openAssign, closePrint, closeWrong)
	for _, op := range []operator{opAdd, opSub, opMul, opFloor, opMod} {
		added = append(added, assignStep(op))
	}
	return added
}
