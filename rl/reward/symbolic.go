package reward

import "strings"

// Which answers are worth a symbolic look. Strings and values cannot tell that x+1 is 1+x; a system of
// computer algebra can, outside this package, which only says what to ask and takes what was answered.

// maxSymbolicBytes bounds each text that is asked about, as numbers and lists are bounded.
const maxSymbolicBytes = maxValueBytes

// Question is an answer that may equal its gold though Compare says otherwise.
type Question struct{ Answer, Gold string }

// Ask returns the question that a comparison leaves open; none where Compare's verdict stands: agreement,
// two values (they are known exactly, or to 1e-6), a gold that Options.Literal wants written out, nothing
// to compare, or more text than a fixed length.
func Ask(answer, gold string, o Options) (Question, bool) {
	q := Question{Answer: strings.TrimSpace(answer), Gold: strings.TrimSpace(gold)}
	if q.Answer == "" || q.Gold == "" || len(q.Answer) > maxSymbolicBytes || len(q.Gold) > maxSymbolicBytes {
		return Question{}, false
	}
	_, answerValued := parseValue(q.Answer)
	g, goldValued := parseValue(q.Gold)
	if goldValued && (answerValued || o.Literal && g.literal) || Compare(answer, gold, o).Correct() {
		return Question{}, false
	}
	return q, true
}

// Settled is an outcome of Compare after its question was answered: equal turns Wrong into Symbolic, worth 1.
func (o Outcome) Settled(equal bool) Outcome {
	if equal && o.Verdict == Wrong {
		o.Verdict = Symbolic
		o.Reward = o.Verdict.Score()
	}
	return o
}
