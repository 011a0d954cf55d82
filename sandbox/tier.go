package sandbox

import (
	"errors"
	"fmt"
)

// ErrTier: the machine isolates calls more weakly than whoever asked accepts. It is the machine's or the
// configuration's fault, and trying again does not help.
var ErrTier = errors.New("isolation is too weak")

// Tier names how strongly calls are isolated; docs/sandbox.md says what each holds and what it does not.
type Tier string

// The tiers, strongest first.
const (
	// TierFull: namespaces of users, processes, mounts, network, IPC and host name; seccomp; no capabilities.
	TierFull Tier = "full"
	// TierLandlock: Landlock and seccomp, without namespaces; new processes are denied, so that killing is complete.
	TierLandlock Tier = "landlock"
	// TierRlimits: limits and a system-call filter; files that the user may read are open to calls. Only for code that one trusts.
	TierRlimits Tier = "rlimits"
)

// Tiers are all tiers, strongest first.
func Tiers() []Tier { return []Tier{TierFull, TierLandlock, TierRlimits} }

// ParseTier returns the tier of a name.
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
			return true // found before least, or with it
		}
		if tier == least {
			return false
		}
	}
	return false
}
