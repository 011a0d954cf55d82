package reward

import "strings"

// Which answers need a verdict from outside. A program needs the verdict of its tests (AskTests). An expression may
// need a symbolic comparison (Ask). Strings and values cannot show that x+1 equals 1+x; a computer algebra system can.
// It runs outside this package, which only says what to ask and reads the answers.

// maxSymbolicBytes bounds each text that is asked about, as numbers and lists are bounded.
const maxSymbolicBytes = maxValueBytes

// Question is an answer that may equal its gold though Compare says otherwise.
type Question struct{ Answer, Gold string }

// Ask returns the question that a comparison leaves open; none where Compare's verdict is final: agreement,
// two values (they are known exactly, or to 1e-6), a gold that Options.Literal wants written out, nothing
// to compare, or more text than a fixed length.
func Ask(answer, gold string, o Options) (Question, bool) {
	q := Question{Answer: strings.TrimSpace(answer), Gold: strings.TrimSpace(gold)}
	if q.Answer == "" || q.Gold == "" || len(q.Answer) > maxSymbolicBytes || len(q.Gold) > maxSymbolicBytes {
		return Question{}, false
	}
	a, want, _ := comparedParts(q.Answer, q.Gold)
	_, answerValued := parseValue(a)
	g, goldValued := parseValue(want)
	if goldValued && (answerValued || o.Literal && g.literal) || Compare(answer, gold, o).Correct() {
		return Question{}, false
	}
	return q, true
}

// AskTests returns the question whether a program passes its tests, which are the gold; none if the outcome holds no
// program.
func AskTests(o Outcome, gold string) (Question, bool) {
	return Question{Answer: o.Answer, Gold: gold}, o.Verdict == Failed && gold != ""
}

// Settled is an outcome of Compare after its question was answered: equal turns Wrong into Symbolic, and Failed into
// Passed, worth 1.
func (o Outcome) Settled(equal bool) Outcome {
	settled, open := map[Verdict]Verdict{Wrong: Symbolic, Failed: Passed}[o.Verdict]
	if equal && open {
		o.Verdict = settled
		o.Reward = o.Verdict.Score()
	}
	return o
}
