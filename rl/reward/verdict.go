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
	Symbolic Verdict = "symbolic"  // the same expression, as a committed grading says (see Ask)
	Wrong    Verdict = "wrong"     // something else
	NoAnswer Verdict = "no_answer" // no answer block (nor, with Fallback, any whole box)
	NoBox    Verdict = "no_box"    // an answer block without a whole box

	// ReferenceSuccess and ReferenceFailure are the source's own verdict on an imported trajectory.
	ReferenceSuccess Verdict = "reference_success"
	ReferenceFailure Verdict = "reference_failure"

	// Passed and Failed say whether a program passes its tests, as a committed grading says (see Ask).
	Passed Verdict = "passed"
	Failed Verdict = "failed"

	// Solved and Unsolved are an environment's own verdict: whether the episode ended at its goal; or that of a user's
	// reward function.
	Solved   Verdict = "solved"
	Unsolved Verdict = "unsolved"
)

// Correct reports whether the verdict is one of agreement.
func (v Verdict) Correct() bool {
	switch v {
	case Exact, Rational, Numeric, Set, Tuple, Symbolic, ReferenceSuccess, Passed, Solved:
		return true
	}
	return false
}

// Score is 1 for agreement, else 0.
func (v Verdict) Score() float64 { return indicator(v.Correct()) }

// outcome is a verdict on an answer, with its score as the reward.
func (v Verdict) outcome(answer string) Outcome {
	return Outcome{Reward: v.Score(), Verdict: v, Answer: answer}
}

// Outcome is the grade of one trajectory.
type Outcome struct {
	Reward  float64 // 0 or 1
	Verdict Verdict
	Answer  string // what was graded: the content of the box; "" without one
}
