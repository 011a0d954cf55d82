package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// all is a sampler that can do everything that a recipe can need.
var all = policy.Capabilities{TokenIDs: true, LogProbs: true, TopLogProbs: 5, Entropy: policy.EntropyFull,
	Temperature: true, TopP: true, TopK: true, MinP: true, RowSeeds: true, BatchInvariant: true, PrefixCache: true,
	Weights: policy.WeightsReload}

// needs are all capabilities, each with a sampler that lacks nothing else.
var needs = map[policy.Capability]func(*policy.Capabilities){
	policy.NeedTokenIDs:    func(c *policy.Capabilities) { c.TokenIDs = false },
	policy.NeedLogProbs:    func(c *policy.Capabilities) { c.LogProbs = false },
	policy.NeedFullEntropy: func(c *policy.Capabilities) { c.Entropy = policy.EntropyTopK },
	policy.NeedTopLogProbs: func(c *policy.Capabilities) { c.TopLogProbs = 0 },
	policy.NeedTemperature: func(c *policy.Capabilities) { c.Temperature = false },
	policy.NeedTopP:        func(c *policy.Capabilities) { c.TopP = false },
	policy.NeedTopK:        func(c *policy.Capabilities) { c.TopK = false },
	policy.NeedMinP:        func(c *policy.Capabilities) { c.MinP = false },
	policy.NeedRowSeeds:    func(c *policy.Capabilities) { c.RowSeeds = false },
	policy.NeedNewWeights:  func(c *policy.Capabilities) { c.Weights = policy.WeightsFixed },
}

func TestDemandsAreMetOneByOne(t *testing.T) {
	var demands []policy.Demand
	for x := range needs {
		demands = append(demands, policy.Demand{Field: "field of " + string(x), Capability: x, Why: "a test"})
	}
	require.NoError(t, all.Check("a sampler", demands))
	for x, without := range needs {
		c := all
		without(&c)
		err := c.Check("a sampler", demands)
		require.ErrorIs(t, err, policy.ErrIncapable)
		require.EqualError(t, err, "field of "+string(x)+": the sampler cannot do what the recipe needs: "+
			"a sampler does not offer "+string(x)+" (a test)")
	}
	require.False(t, all.Has("flight"), "an unknown capability is never met")
}

func TestContradictingCapabilities(t *testing.T) {
	require.NoError(t, all.Validate())
	require.NoError(t, policy.Capabilities{}.Validate())
	for want, change := range map[string]func(*policy.Capabilities){
		"-1 top log-probabilities":                        func(c *policy.Capabilities) { c.TopLogProbs = -1 },
		"top-k entropies without top-k log-probabilities": topKAlone,
		`unknown kind of entropy "some"`:                  func(c *policy.Capabilities) { c.Entropy = "some" },
		`unknown way to update weights "post"`:            func(c *policy.Capabilities) { c.Weights = "post" },
		"batch invariance without a seed for each row":    func(c *policy.Capabilities) { c.RowSeeds = false },
	} {
		c := all
		change(&c)
		require.EqualError(t, c.Validate(), "capabilities: "+want)
	}
}

func topKAlone(c *policy.Capabilities) { c.Entropy, c.TopLogProbs = policy.EntropyTopK, 0 }
