package presigned

import (
	"slices"

	"github.com/ropewalk/ropewalk/store/s3"
)

// Policy says what a client may ask for: what any of its rules permits.
type Policy []Rule

// Rule permits operations on keys.
type Rule struct {
	Operations []s3.Operation
	Keys       string // the keys in words, for people
	For        string // what needs it
	Match      func(key string) bool
}

// Permits reports whether the policy permits an operation on a key, or on the keys with a prefix.
func (p Policy) Permits(o s3.Operation, target string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool {
		return slices.Contains(r.Operations, o) && r.Match(target)
	})
}
