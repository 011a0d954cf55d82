package sandbox

import (
	"errors"
	"fmt"
)

// ErrTier means that the machine isolates calls more weakly than the caller accepts. The cause is the machine or the
// configuration, so trying again does not help.
var ErrTier = errors.New("isolation is too weak")

// Tier names how strongly calls are isolated. docs/sandbox.md says what each tier protects against and what not.
type Tier string

// The tiers, strongest first.
const (
	// TierFull uses namespaces for users, processes, mounts, network, IPC and host name; seccomp; no capabilities.
	TierFull Tier = "full"
	// TierLandlock uses Landlock and seccomp, without namespaces. New processes are refused, so that killing one
	// process ends the whole call.
	TierLandlock Tier = "landlock"
	// TierRlimits uses limits and a system-call filter. Calls can read all files that the user can. Only for trusted
	// code.
	TierRlimits Tier = "rlimits"
)

// Tiers returns all tiers, strongest first.
func Tiers() []Tier { return []Tier{TierFull, TierLandlock, TierRlimits} }

// ParseTier returns the tier with a name.
func ParseTier(name string) (Tier, error) {
	for _, t := range Tiers() {
		if string(t) == name {
			return t, nil
		}
	}
	return "", fmt.Errorf("tier %q is not one of full, landlock, rlimits", name)
}

// AtLeast reports whether t isolates as strongly as least does.
func (t Tier) AtLeast(least Tier) bool {
	for _, tier := range Tiers() {
		if tier == t {
			return true // t comes before least, or is least
		}
		if tier == least {
			return false
		}
	}
	return false
}
