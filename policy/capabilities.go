package policy

import (
	"errors"
	"fmt"
)

// Capabilities state what a Sampler can do, so that a recipe which needs more is refused before anything runs. A false
// or zero field promises nothing.
type Capabilities struct {
	// TokenIDs: prefixes are read, and responses returned, as the very token ids. A sampler that passes text in either
	// direction must not state it, because encoding the text again can give other ids.
	TokenIDs bool `json:"token_ids"`
	// LogProbs: each sampled token has its log-probability under the distribution that it was drawn from.
	LogProbs bool `json:"logprobs"`
	// TopLogProbs is the number of likeliest tokens at each position whose log-probabilities are known; 0 = none.
	TopLogProbs int `json:"top_logprobs"`
	// Entropy says over which tokens Generated.Entropies are computed.
	Entropy EntropyKind `json:"entropy"`
	// Temperature: any temperature is applied, 0 included. Otherwise it is 1, or 0 with Greedy, and another is
	// ErrBadRequest.
	Temperature bool `json:"temperature"`
	Greedy      bool `json:"greedy"` // temperature 0 is applied, whether others are or not; it follows from Temperature
	TopP        bool `json:"top_p"`  // sampling can be limited to the likeliest tokens of a given probability
	TopK        bool `json:"top_k"`  // sampling can be limited to a given number of likeliest tokens
	MinP        bool `json:"min_p"`  // sampling can be limited to tokens of a share of the likeliest one's probability
	// RowSeeds: a row's tokens follow from its prefix, its stream and the weights. They do not depend on the other rows
	// of the request or on earlier calls.
	RowSeeds bool `json:"row_seeds"`
	// BatchInvariant: log-probabilities and entropies of a row do not depend on the other rows of the request either,
	// not even by rounding.
	BatchInvariant bool `json:"batch_invariant"`
	// PrefixCache: what was computed for a prefix is kept from one Generate to the next, until the next Load.
	PrefixCache bool `json:"prefix_cache"`
	// Reference: a second model can be loaded under RoleReference, and generates while the policy stays loaded.
	Reference bool `json:"reference"`
	// Weights says how Load brings weights to the sampler.
	Weights WeightUpdate `json:"weights"`
}

// EntropyKind says over which tokens an entropy is computed.
type EntropyKind string

// The kinds of entropy that a sampler can give for each sampled token.
const (
	EntropyNone EntropyKind = ""      // no entropies
	EntropyTopK EntropyKind = "top-k" // of the TopLogProbs likeliest tokens
	EntropyFull EntropyKind = "full"  // of all tokens
)

// WeightUpdate says how Load brings weights to a sampler.
type WeightUpdate string

// The ways in which weights reach a sampler.
const (
	WeightsFixed  WeightUpdate = ""       // never: Load accepts only the folder whose weights the sampler already has
	WeightsLoad   WeightUpdate = "load"   // the sampler itself reads the folder
	WeightsReload WeightUpdate = "reload" // a server that sees the folder under the same path is told to read it
)

// Validate reports the first statement that contradicts another.
func (c Capabilities) Validate() error {
	switch {
	case c.TopLogProbs < 0:
		return fmt.Errorf("capabilities: %d top log-probabilities", c.TopLogProbs)
	case c.Entropy == EntropyTopK && c.TopLogProbs == 0:
		return errors.New("capabilities: top-k entropies without top-k log-probabilities")
	case c.Entropy != EntropyNone && c.Entropy != EntropyTopK && c.Entropy != EntropyFull:
		return fmt.Errorf("capabilities: unknown kind of entropy %q", c.Entropy)
	case c.Weights != WeightsFixed && c.Weights != WeightsLoad && c.Weights != WeightsReload:
		return fmt.Errorf("capabilities: unknown way to update weights %q", c.Weights)
	case c.BatchInvariant && !c.RowSeeds:
		return errors.New("capabilities: batch invariance without a seed for each row")
	}
	return nil
}

// Capability names one capability in demands and errors.
type Capability string

// The capabilities that a recipe can need.
const (
	NeedTokenIDs    Capability = "exact token ids"
	NeedLogProbs    Capability = "log-probabilities of sampled tokens"
	NeedTopLogProbs Capability = "log-probabilities of the likeliest tokens"
	NeedFullEntropy Capability = "entropies over the full vocabulary"
	NeedTemperature Capability = "temperature"
	NeedGreedy      Capability = "temperature 0"
	NeedTopP        Capability = "top-p sampling"
	NeedTopK        Capability = "top-k sampling"
	NeedMinP        Capability = "min-p sampling"
	NeedRowSeeds    Capability = "a seed for each row"
	NeedNewWeights  Capability = "new weights"
	NeedReference   Capability = "a second model next to the policy"
)

// offers says of each capability whether a sampler has it.
var offers = map[Capability]func(Capabilities) bool{
	NeedTokenIDs:    func(c Capabilities) bool { return c.TokenIDs },
	NeedLogProbs:    func(c Capabilities) bool { return c.LogProbs },
	NeedTopLogProbs: func(c Capabilities) bool { return c.TopLogProbs > 0 },
	NeedFullEntropy: func(c Capabilities) bool { return c.Entropy == EntropyFull },
	NeedTemperature: func(c Capabilities) bool { return c.Temperature },
	NeedGreedy:      func(c Capabilities) bool { return c.Temperature || c.Greedy },
	NeedTopP:        func(c Capabilities) bool { return c.TopP },
	NeedTopK:        func(c Capabilities) bool { return c.TopK },
	NeedMinP:        func(c Capabilities) bool { return c.MinP },
	NeedRowSeeds:    func(c Capabilities) bool { return c.RowSeeds },
	NeedNewWeights:  func(c Capabilities) bool { return c.Weights != WeightsFixed },
	NeedReference:   func(c Capabilities) bool { return c.Reference },
}

// Has reports whether c includes a capability.
func (c Capabilities) Has(x Capability) bool {
	has, known := offers[x]
	return known && has(c)
}

// Demand is a capability that a recipe's field needs.
type Demand struct {
	Field      string // the recipe's field, for example evaluation.top_p
	Capability Capability
	Why        string // what the field uses it for
}

// Check returns an error with a line for each demand that c does not meet. sampler names the sampler in the lines. The
// error is ErrIncapable.
func (c Capabilities) Check(sampler string, demands []Demand) error {
	var missing []error
	for _, d := range demands {
		if !c.Has(d.Capability) {
			missing = append(missing, fmt.Errorf("%s: %w: %s does not offer %s (%s)", d.Field, ErrIncapable, sampler,
				d.Capability, d.Why))
		}
	}
	return errors.Join(missing...)
}
