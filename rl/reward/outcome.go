package reward

// Verdict says how an answer compared with the gold.
type Verdict string

// The verdicts.
const (
	Exact    Verdict = "exact"     // the same string after normalising
	Rational Verdict = "rational"  // the same exact value, written differently
	Numeric  Verdict = "numeric"   // the same value to 1e-6 relative, through a root
	Set      Verdict = "set"       // the same elements, in any order
	Tuple    Verdict = "tuple"     // the same elements in order, in the same brackets
	Wrong    Verdict = "wrong"     // something else
	NoAnswer Verdict = "no_answer" // no answer block (nor, with Fallback, any whole box)
	NoBox    Verdict = "no_box"    // an answer block without a whole box

	// ReferenceSuccess and ReferenceFailure are the source's own verdict on an imported trajectory.
	ReferenceSuccess Verdict = "reference_success"
	ReferenceFailure Verdict = "reference_failure"
)

// Correct reports whether the verdict is one of agreement.
func (v Verdict) Correct() bool {
	switch v {
	case Exact, Rational, Numeric, Set, Tuple, ReferenceSuccess:
		return true
	}
	return false
}

// Score is 1 for agreement, else 0.
func (v Verdict) Score() float64 {
	if v.Correct() {
		return 1
	}
	return 0
}

// Options says how strictly to grade.
type Options struct {
	// Fallback grades the whole text where it has no answer block, or one without a box.
	Fallback bool
	// Literal asks for a written number where the gold is one: integers, decimals and percentages
	// pass, while 12/3 or \sqrt{16} for 4 leave the work undone and are wrong.
	Literal bool
}

// Outcome is the grade of one trajectory.
type Outcome struct {
	Reward  float64 // 0 or 1
	Verdict Verdict
	Answer  string // what was graded: the content of the box; "" without one
}

// Grade gives rStar2's outcome reward of a trajectory's text: the last box inside the last answer
// block, against the gold.
func Grade(text, gold string, o Options) Outcome {
	block, answered := LastAnswer(text)
	answer, boxed := LastBoxed(block)
	if o.Fallback && !boxed {
		answer, boxed = LastBoxed(text)
	}
	switch {
	case boxed:
		v := Compare(answer, gold, o)
		return Outcome{Reward: v.Score(), Verdict: v, Answer: answer}
	case answered:
		return Outcome{Verdict: NoBox}
	}
	return Outcome{Verdict: NoAnswer}
}
