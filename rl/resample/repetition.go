package resample

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var repetition = Filter{
	Choice: choice.Choice{
		Name: "repetition", Doc: "rows that repeat themselves are masked", Source: "SPEAR's released code",
		Settings: DefaultRepetition,
		Field:    "mask a row that repeats itself; null or absent = off",
	},
	Why:    RepetitiveResponse,
	Tokens: true,
}

// Mask reports that the tokens are repetitive.
func (r Repetition) Mask(response Response) bool { return r.Match(response.Tokens) }

// Repetition masks responses that repeat themselves: some run of Gram tokens occurs at least Times times,
// overlapping occurrences included. The reward still counts in the group.
//
// Source: SPEAR's release (20 tokens, 10 times; not in the paper). Departures: none.
type Repetition struct {
	Gram  int `json:"ngram" min:"1" max:"1000" doc:"tokens of the n-gram"`
	Times int `json:"times" min:"2" max:"100000" doc:"occurrences that mask the row"`
}

// DefaultRepetition holds the release's constants.
var DefaultRepetition = Repetition{Gram: 20, Times: 10}

// Validate reports the first bad field.
func (r Repetition) Validate() error { return choice.Check("repetition.", r) }

// hashBase is the multiplier of the rolling hash. It is odd, so that no power of it is 0 mod 2^64.
const hashBase = 0x9e3779b97f4a7c15

// run is one distinct run of tokens: where it occurred first and how often since.
type run struct{ at, times int }

// Match reports that the tokens are repetitive. It hashes runs, and compares runs with equal hashes.
func (r Repetition) Match(tokens []int32) bool {
	if len(tokens)-r.Gram+1 < r.Times { // even overlapping, a run cannot occur that often
		return false
	}
	seen := make(map[uint64][]run, len(tokens)-r.Gram+1)
	hash, lead := uint64(0), uint64(1)
	for i, token := range tokens {
		hash = hash*hashBase + uint64(uint32(token)) + 1
		if i >= r.Gram {
			hash -= lead * (uint64(uint32(tokens[i-r.Gram])) + 1)
		} else {
			lead *= hashBase // becomes base^Gram, the weight of the token that leaves the run
		}
		if at := i - r.Gram + 1; at >= 0 && r.count(seen, hash, at, tokens) >= r.Times {
			return true
		}
	}
	return false
}

// count notes the run that begins at a place and returns how often it has occurred.
func (r Repetition) count(seen map[uint64][]run, hash uint64, at int, tokens []int32) int {
	same := seen[hash]
	for k := range same {
		if first := same[k].at; slices.Equal(tokens[first:first+r.Gram], tokens[at:at+r.Gram]) {
			same[k].times++
			return same[k].times
		}
	}
	seen[hash] = append(same, run{at: at, times: 1})
	return 1
}
