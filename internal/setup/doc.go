// Package setup compares Temporal's namespace and the record's bucket with what the project needs, and creates what is
// missing.
//
// A *finding* is one thing that was compared: what is needed, what there is, and a *state*. Read functions (OfTemporal,
// OfStore) change nothing; Create functions create what a finding calls missing, and never lower, replace or delete
// what is there. What only its owner should change is a *conflict*: an attribute of another type, a lifecycle rule that
// deletes the record.
package setup

import "slices"

// State says how a thing compares with what is needed.
type State string

// States of findings.
const (
	OK       State = "ok"
	Missing  State = "missing"  // it can be created
	Conflict State = "conflict" // someone has to decide
	Note     State = "note"     // nothing is needed; the reader should know
)

// Finding is one thing that was compared.
type Finding struct {
	What  string `json:"what"`
	State State  `json:"state"`
	Need  string `json:"need"`
	Have  string `json:"have"`
	// Advice says what to do about a conflict, or what a note means.
	Advice string `json:"advice,omitempty"`
}

// Findings are the result of one comparison.
type Findings []Finding

// Has reports whether a finding is in one of these states.
func (f Findings) Has(states ...State) bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return slices.Contains(states, one.State) })
}

func (f *Findings) add(state State, what, need, have, advice string) {
	*f = append(*f, Finding{What: what, State: state, Need: need, Have: have, Advice: advice})
}
