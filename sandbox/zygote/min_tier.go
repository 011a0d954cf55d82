package zygote

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/sandbox"
)

// tooWeak returns an ErrTier if the obtained tier is weaker than the options accept, and nil otherwise. faults say why
// the stronger tiers failed.
func (o Options) tooWeak(obtained sandbox.Tier, faults []error) error {
	least := o.MinTier
	if least == "" {
		least = sandbox.TierFull
	}
	if o.Tier == obtained || obtained.AtLeast(least) { // a tier chosen by name is accepted
		return nil
	}
	return fmt.Errorf("%w: this machine grants tier %s, and %s is the weakest that is accepted (%w); "+
		"`ropewalk sandbox doctor` says what it lacks, min_tier accepts a weaker one",
		sandbox.ErrTier, obtained, least, errors.Join(faults...))
}
