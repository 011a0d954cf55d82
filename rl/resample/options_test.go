package resample

import "github.com/ropewalk/ropewalk/rl/advantage"

// Options spell out the chain of dynamic sampling, RejectEqual, LowVariance, VSPO and RoC, then the masks in their
// order; a nil part is off. Source may be nil only when nothing is drawn.
type Options struct {
	Dynamic     *Rounds
	RejectEqual bool
	LowVariance *LowVariance
	VSPO        *advantage.VSPO
	RoC         *RoC
	Masks       []Link
	Source      Source
}

// Validate reports the first bad field.
func (o Options) Validate() error { return o.chain().Validate() }

// String names the links of the chain in their order.
func (o Options) String() string { return o.chain().String() }

// chain returns the options as links.
func (o Options) chain() Chain {
	c := Chain{Source: o.Source}
	if o.Dynamic != nil {
		c.Links = append(c.Links, *o.Dynamic)
	}
	if o.RejectEqual {
		c.Links = append(c.Links, RejectEqual{})
	}
	if o.LowVariance != nil {
		c.Links = append(c.Links, *o.LowVariance)
	}
	if o.VSPO != nil {
		c.Links = append(c.Links, ValueResampling{*o.VSPO})
	}
	if o.RoC != nil {
		c.Links = append(c.Links, *o.RoC)
	}
	c.Links = append(c.Links, o.Masks...)
	return c
}

// Select runs the chain of the options over the rows of a step.
func Select(rows []Row, o Options) (Selection, error) {
	return o.chain().Select(rows)
}
