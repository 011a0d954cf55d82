package curation

import "fmt"

// Difficulty keeps tasks by how many of a given model's answers are right.
//
// Source: rStar2-Agent section 4.2 has a model answer each problem 16 times and keeps those that at least 2 answers
// match. Departure: there is also an upper bound, for tasks from which nothing is left to learn.
type Difficulty struct {
	AtLeast int
	AtMost  int // 0 = any number
}

// Judge returns the verdict on a task of whose answers some are right.
func (d Difficulty) Judge(answers, matched int) Verdict {
	detail := fmt.Sprintf("%d of %d answers", matched, answers)
	switch {
	case matched < d.AtLeast:
		return Verdict{Reason: tooHard, Detail: detail}
	case d.AtMost > 0 && matched > d.AtMost:
		return Verdict{Reason: tooEasy, Detail: detail}
	}
	return Verdict{}
}
