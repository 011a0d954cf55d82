package zygote

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

// LeastLandlock is the first version of Landlock that refuses truncate(2) outside of the folders that a ruleset opens
// for writing (Linux 6.2). With an earlier version a call could truncate every file of the user that calls run as,
// since the filter has to allow truncate for the work folder.
const LeastLandlock = 3

// LandlockVersion asks the kernel for its version of Landlock. It fails if the kernel has no Landlock.
func LandlockVersion() (int, error) {
	const askVersion = 1 // LANDLOCK_CREATE_RULESET_VERSION
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, askVersion)
	if errno != 0 {
		return 0, fmt.Errorf("ask for Landlock's version: %w", errno)
	}
	return int(version), nil
}

// landlockHolds returns an error if the tier relies on Landlock and the kernel's version does not provide what the tier
// promises. ask is Options.Landlock.
func landlockHolds(tier sandbox.Tier, ask func() (int, error)) error {
	if tier != sandbox.TierLandlock {
		return nil
	}
	if ask == nil {
		ask = LandlockVersion
	}
	version, err := ask()
	if err != nil {
		return err
	}
	if version < LeastLandlock {
		return fmt.Errorf("this kernel has Landlock version %d, which lets calls truncate the user's files; "+
			"version %d is needed (Linux 6.2), or user namespaces for the tier %s", version, LeastLandlock,
			sandbox.TierFull)
	}
	return nil
}
