package checkpoint

import (
	"cmp"
	"fmt"
	"math"
)

// RopeScaling stretches rotary embedding to longer sequences than a model was first trained on. The zero value changes
// nothing. Fields are those of transformers' rope_parameters, called rope_scaling up to version 4.
type RopeScaling struct {
	Type     RopeType
	Factor   float64 // how much longer sequences become
	LowFreq  float64 // llama3: wavelengths above Original/LowFreq are stretched whole
	HighFreq float64 // llama3: wavelengths below Original/HighFreq are not stretched
	BetaFast float64 // yarn: dimensions that turn more often than this over Original positions are not stretched
	BetaSlow float64 // yarn: dimensions that turn less often than this are stretched whole
	// Attention multiplies cosines and sines; 0 = what the type prescribes.
	Attention float64
	Original  int // longest sequence before the stretch
}

// RopeType names a rule of stretching.
type RopeType string

// The rules.
const (
	RopeDefault RopeType = ""
	RopeLinear  RopeType = "linear" // every angle divided by the factor (Chen et al. 2023)
	RopeLlama3  RopeType = "llama3" // Llama 3.1: long wavelengths alone
	RopeYarn    RopeType = "yarn"   // Peng et al. 2023: long wavelengths, and a temperature for attention
)

// ropeJSON is the part of rope_parameters, or of the earlier rope_scaling, that this package reads.
type ropeJSON struct {
	Type        string   `json:"rope_type"`
	OldType     string   `json:"type"`
	Theta       *float64 `json:"rope_theta"`
	Factor      float64  `json:"factor"`
	LowFreq     float64  `json:"low_freq_factor"`
	HighFreq    float64  `json:"high_freq_factor"`
	BetaFast    *float64 `json:"beta_fast"`
	BetaSlow    *float64 `json:"beta_slow"`
	Attention   *float64 `json:"attention_factor"`
	MScale      *float64 `json:"mscale"`
	MScaleAll   *float64 `json:"mscale_all_dim"`
	Truncate    *bool    `json:"truncate"`
	Original    int      `json:"original_max_position_embeddings"`
	PartOfHeads *float64 `json:"partial_rotary_factor"`
}

// scaling returns the rule of stretching; positions is the model's longest sequence.
func (r *ropeJSON) scaling(positions int) (RopeScaling, error) {
	kind := cmp.Or(r.Type, r.OldType)
	if r.PartOfHeads != nil && *r.PartOfHeads != 1 {
		return RopeScaling{}, fmt.Errorf("%w: partial_rotary_factor is %v", ErrUnsupported, *r.PartOfHeads)
	}
	s := RopeScaling{Type: RopeType(kind), Factor: r.Factor, Original: r.Original}
	switch s.Type {
	case RopeDefault, "default":
		return RopeScaling{}, nil
	case RopeLinear:
		s.Original = 0
	case RopeLlama3:
		s.LowFreq, s.HighFreq = r.LowFreq, r.HighFreq
	case RopeYarn:
		if r.Truncate != nil && !*r.Truncate {
			return RopeScaling{}, fmt.Errorf("%w: truncate is false", ErrUnsupported)
		}
		s.BetaFast, s.BetaSlow, s.Attention = or(r.BetaFast, 32), or(r.BetaSlow, 1), r.attention()
		s.Original = cmp.Or(s.Original, positions)
	default:
		return RopeScaling{}, fmt.Errorf("%w: rope_type is %q, want default, linear, llama3 or yarn", ErrUnsupported,
			kind)
	}
	return s, s.validate()
}

// attention is yarn's factor of cosines and sines (Peng et al. 2023, eq. 22).
func (r *ropeJSON) attention() float64 {
	scale := func(m float64) float64 {
		if r.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(r.Factor) + 1
	}
	switch {
	case r.Attention != nil:
		return *r.Attention
	case r.MScale != nil && r.MScaleAll != nil && *r.MScale != 0 && *r.MScaleAll != 0:
		return scale(*r.MScale) / scale(*r.MScaleAll)
	}
	return scale(1)
}

func or(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

func (s RopeScaling) validate() error {
	positive := func(name string, v float64) error {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: %s of rope_type %s is %v", ErrUnsupported, name, s.Type, v)
		}
		return nil
	}
	if s.Type == RopeDefault {
		return nil
	}
	if err := positive("factor", s.Factor); err != nil || s.Type == RopeLinear {
		return err
	}
	if s.Original < 1 || s.Original > maxSide {
		return fmt.Errorf("%w: original_max_position_embeddings of rope_type %s is %d", ErrUnsupported, s.Type,
			s.Original)
	}
	names, values := []string{"low_freq_factor", "high_freq_factor"}, []float64{s.LowFreq, s.HighFreq}
	if s.Type == RopeYarn {
		names = []string{"beta_fast", "beta_slow", "attention_factor"}
		values = []float64{s.BetaFast, s.BetaSlow, s.Attention}
	}
	for i, name := range names {
		if err := positive(name, values[i]); err != nil {
			return err
		}
	}
	if s.Type == RopeLlama3 && s.HighFreq <= s.LowFreq {
		return fmt.Errorf("%w: high_freq_factor %v is not above low_freq_factor %v", ErrUnsupported, s.HighFreq,
			s.LowFreq)
	}
	return nil
}

// RopeFrequencies returns the angle by which each pair of dimensions of a head turns from one position to the next
// (half of HeadDim values), and the factor of cosines and sines.
func (s Shape) RopeFrequencies() (perPosition []float64, factor float64) {
	half := s.HeadDim / 2
	perPosition = make([]float64, half)
	for i := range perPosition {
		perPosition[i] = math.Pow(s.RopeTheta, -float64(i)/float64(half))
	}
	switch r := s.Rope; r.Type {
	case RopeLinear:
		for i := range perPosition {
			perPosition[i] /= r.Factor
		}
	case RopeLlama3:
		for i, f := range perPosition {
			perPosition[i] = r.llama3(f)
		}
	case RopeYarn:
		low, high := r.yarnRange(s)
		for i, f := range perPosition {
			ramp := min(max((float64(i)-low)/(high-low), 0), 1)
			perPosition[i] = f/r.Factor*ramp + f*(1-ramp)
		}
		return perPosition, r.Attention
	}
	return perPosition, 1
}

// llama3 stretches one frequency (Llama 3.1, released code).
func (s RopeScaling) llama3(f float64) float64 {
	turns := float64(s.Original) * f / (2 * math.Pi) // over the original positions
	switch {
	case turns < s.LowFreq:
		return f / s.Factor
	case turns > s.HighFreq:
		return f
	}
	smooth := (turns - s.LowFreq) / (s.HighFreq - s.LowFreq)
	return (1-smooth)*f/s.Factor + smooth*f
}

// yarnRange returns the pairs of dimensions between which yarn goes from no stretch to the whole stretch.
func (s RopeScaling) yarnRange(shape Shape) (low, high float64) {
	at := func(turns float64) float64 {
		return float64(shape.HeadDim) * math.Log(float64(s.Original)/(turns*2*math.Pi)) /
			(2 * math.Log(shape.RopeTheta))
	}
	low, high = max(math.Floor(at(s.BetaFast)), 0), min(math.Ceil(at(s.BetaSlow)), float64(shape.HeadDim-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

// json returns the rule as rope_parameters has it.
func (s RopeScaling) json(theta float64) map[string]any {
	m := map[string]any{"rope_theta": theta, "rope_type": "default"}
	if s.Type == RopeDefault {
		return m
	}
	m["rope_type"], m["factor"] = string(s.Type), s.Factor
	switch s.Type {
	case RopeLlama3:
		m["low_freq_factor"], m["high_freq_factor"] = s.LowFreq, s.HighFreq
		m["original_max_position_embeddings"] = s.Original
	case RopeYarn:
		m["beta_fast"], m["beta_slow"], m["attention_factor"] = s.BetaFast, s.BetaSlow, s.Attention
		m["original_max_position_embeddings"] = s.Original
	}
	return m
}
