package evaluation

import (
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Validity says how often the calls of an evaluation's sampled episodes have their protocol's form.
type Validity struct {
	// Rate is the share of episodes that make a call and whose calls are all valid, with its interval over problems.
	Rate  api.Rate `json:"rate"`
	Calls int      `json:"calls"` // of the sampled episodes
	Valid int      `json:"valid"` // those that the protocol decodes, of a tool and with arguments that there are
}

// malformed are the statuses of calls that break the protocol's form. A program that fails and a call beyond the budget
// have the form.
var malformed = []string{string(env.CallDecodeError), string(env.CallUnknownTool), string(env.CallBadArgument)}

// ValidityOf computes the validity of calls from an evaluation's rows. An episode without a call counts as one without
// a valid call, so a policy that cannot write calls has the rate 0. ok is false if the episodes are not recorded.
func ValidityOf(rows []schema.EvaluationRow, calls []schema.EvaluationCallRow, runSeed uint64) (out Validity, ok bool) {
	type count struct{ calls, valid int }
	of := map[string]*count{}
	for _, c := range calls {
		if c.Excluded != nil {
			continue
		}
		n := of[c.TrajectoryID]
		if n == nil {
			n = &count{}
			of[c.TrajectoryID] = n
		}
		n.calls++
		if !slices.Contains(malformed, c.Status) {
			n.valid++
		}
	}
	problems := map[string]*tally{}
	var units []*tally
	for _, r := range Sampled(rows) {
		if r.Greedy {
			continue
		}
		if r.TrajectoryID == nil {
			return Validity{}, false
		}
		n := count{}
		if found := of[*r.TrajectoryID]; found != nil {
			n = *found
		}
		out.Calls, out.Valid = out.Calls+n.calls, out.Valid+n.valid
		p := problems[r.ProblemID]
		if p == nil {
			p = &tally{}
			problems[r.ProblemID] = p
			units = append(units, p)
		}
		p.add(n.calls > 0 && n.valid == n.calls)
	}
	out.Rate = Rate(meansOf(units), runSeed, "valid calls")
	return out, out.Rate.N > 0
}
