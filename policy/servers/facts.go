package servers

import (
	"cmp"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
)

// Facts are what a server has said and shown about itself when it was opened. A run records them.
type Facts struct {
	Server    string `json:"server"` // kind and address; references to secrets are not resolved
	Model     string `json:"model"`
	Revision  string `json:"revision,omitempty"` // of the program or the weights, as far as the server tells
	Dtype     string `json:"dtype,omitempty"`
	Positions int    `json:"positions"` // longest prefix and response together; 0 = unknown
	// Tokens are those that its KV cache holds, and Rows the responses that it generates at once; 0 = unknown.
	Tokens int `json:"tokens,omitempty"`
	Rows   int `json:"rows,omitempty"`
	// LogProbs is the kind of log-probabilities.
	LogProbs     LogProbs            `json:"log_probs"`
	Capabilities policy.Capabilities `json:"capabilities"`
}

// LogProbs says under which distribution a server's log-probabilities are.
type LogProbs string

// The kinds of log-probabilities.
const (
	LogProbsNone     LogProbs = "none"
	LogProbsModel    LogProbs = "model"    // the model's own: temperature 1, nothing cut off
	LogProbsSampling LogProbs = "sampling" // what was sampled from: the temperature is applied
)

// String describes the server in one line.
func (f Facts) String() string {
	return fmt.Sprintf("%s: model %s, revision %s, dtype %s, context %d, log-probabilities: %s", f.Server, f.Model,
		cmp.Or(f.Revision, "unknown"), cmp.Or(f.Dtype, "unknown"), f.Positions, f.LogProbs)
}

// capabilitiesOf are those of a server of this kind of log-probabilities that takes token ids; findCuts adds the limits
// of sampling.
func capabilitiesOf(kind LogProbs) policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, Greedy: true, PrefixCache: true,
		Temperature: kind == LogProbsSampling, TopLogProbs: mostTop}
}

// common are the capabilities that all servers have.
func common(all []Facts) policy.Capabilities {
	out := all[0].Capabilities
	for _, f := range all[1:] {
		c := f.Capabilities
		out.TokenIDs, out.LogProbs = out.TokenIDs && c.TokenIDs, out.LogProbs && c.LogProbs
		out.TopLogProbs = min(out.TopLogProbs, c.TopLogProbs)
		if out.Entropy != c.Entropy {
			out.Entropy = policy.EntropyNone
		}
		out.Temperature, out.Greedy = out.Temperature && c.Temperature, out.Greedy && c.Greedy
		out.TopP, out.TopK, out.MinP = out.TopP && c.TopP, out.TopK && c.TopK, out.MinP && c.MinP
		out.RowSeeds = out.RowSeeds && c.RowSeeds
		out.BatchInvariant = out.BatchInvariant && c.BatchInvariant && out.RowSeeds
		out.PrefixCache = out.PrefixCache && c.PrefixCache
		if c.Weights == policy.WeightsFixed {
			out.Weights = policy.WeightsFixed
		}
	}
	return out
}

// covers reports whether a server that was opened later can do what the sampler has stated.
func covers(stated, c policy.Capabilities) bool {
	return common([]Facts{{Capabilities: stated}, {Capabilities: c}}) == stated
}
