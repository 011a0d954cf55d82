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
	of := map[string]count{}
	for _, c := range calls {
		if c.Excluded != nil {
			continue
		}
		n := of[c.TrajectoryID]
		n.calls++
		if !slices.Contains(malformed, c.Status) {
			n.valid++
		}
		of[c.TrajectoryID] = n
	}
	recorded := true
	valid := byProblem(Sampled(rows), func(r schema.EvaluationRow) (float64, bool) {
		if r.TrajectoryID == nil {
			recorded = false
			return 0, false
		}
		n := of[*r.TrajectoryID]
		out.Calls, out.Valid = out.Calls+n.calls, out.Valid+n.valid
		return number(n.calls > 0 && n.valid == n.calls), true
	})
	if !recorded {
		return Validity{}, false
	}
	out.Rate = Rate(meansOf(valid), runSeed, "valid calls")
	return out, out.Rate.N > 0
}
