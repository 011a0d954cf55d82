package reward

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Overlong responses.
//
//	soft  R += min(−(len − (L_max − buffer))/buffer·factor, 0)
//	zero  R = 0 for a response that was cut off at its limit
//
// Source: soft, DAPO's soft overlong punishment; zero, rStar2-Agent, which found that filtering
// such responses made truncation worse. SPEAR masks them out of the loss instead; that is a filter
// (rl/resample). Departure: beyond L_max the penalty keeps growing, as in the release; in the paper it stops at
// −1.

// OverlongMode names what is done.
type OverlongMode string

// The modes.
const (
	OverlongKeep OverlongMode = "keep"
	OverlongSoft OverlongMode = "soft"
	OverlongZero OverlongMode = "zero"
)

// Overlong is the treatment as one choice of a method. The zero value keeps every reward.
type Overlong struct {
	Mode      OverlongMode `enum:"keep|soft|zero"` // "" means keep
	MaxLength int          // L_max, in response tokens; read by soft
	Buffer    int          // tokens before L_max over which the penalty grows; read by soft
	Factor    float64      `min:"0"` // penalty at L_max; 0 means 1; read by soft
}

// Validate names a field out of range.
func (o Overlong) Validate() error {
	if err := choice.Check("overlong: ", o); err != nil || o.Mode != OverlongSoft {
		return err
	}
	if o.Buffer <= 0 || o.Buffer > o.MaxLength {
		return fmt.Errorf("overlong: buffer must be in [1, max length], got %d of %d", o.Buffer, o.MaxLength)
	}
	return nil
}

// Reward returns the changed reward of a response. length ≥ 0 is its number of tokens; truncated says that it was
// cut off at its limit.
func (o Overlong) Reward(reward float64, length int, truncated bool) (float64, error) {
	if err := o.Validate(); err != nil {
		return 0, err
	}
	if length < 0 {
		return 0, fmt.Errorf("overlong: length must not be negative, got %d", length)
	}
	switch {
	case o.Mode == OverlongSoft:
		return reward + o.penalty(length), nil
	case o.Mode == OverlongZero && truncated:
		return 0, nil
	}
	return reward, nil
}

// penalty returns the term that soft adds.
func (o Overlong) penalty(length int) float64 {
	factor := o.Factor
	if factor == 0 {
		factor = 1
	}
	return SoftOverlong(length, o.MaxLength, o.Buffer, factor)
}

// SoftOverlong is DAPO's penalty of a response's length in tokens, at most 0; 0 < buffer.
func SoftOverlong(length, maxLength, buffer int, factor float64) float64 {
	excess := length - (maxLength - buffer)
	if excess <= 0 {
		return 0
	}
	return -float64(excess) / float64(buffer) * factor
}
