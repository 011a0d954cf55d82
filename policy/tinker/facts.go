package tinker

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Facts are what a server has said and shown about itself when it was opened. A run records them.
type Facts struct {
	Server     string     `json:"server"` // kind and address; references to secrets are not resolved
	BaseModel  string     `json:"base_model"`
	Positions  int        `json:"positions,omitempty"` // longest sequence; 0 = the server does not say
	Convention Convention `json:"convention"`
	// Downloads: adapters can be downloaded, so that checkpoints hold them.
	Downloads bool `json:"downloads"`
	// LoadFirst: only an adapter that has not been used takes the weights of a checkpoint.
	LoadFirst bool `json:"load_first,omitempty"`
}

// String describes the server in one line.
func (f Facts) String() string {
	out := fmt.Sprintf("%s: base model %s, %s", f.Server, f.BaseModel, f.Convention)
	if !f.Downloads {
		out += ", adapters stay at the server"
	}
	return out
}

// capabilities are what every server can do: log-probabilities are the model's own, whatever was sampled from, so that
// only the temperatures 1 and 0 are offered.
func capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, Greedy: true, Weights: policy.WeightsLoad}
}

// survey begins a session and establishes the facts about the server.
func survey(ctx context.Context, l *link, o Options, shape checkpoint.Shape) (*session, Facts, error) {
	facts := Facts{Server: l.Name(), BaseModel: l.BaseModel}
	var err error
	if facts.Positions, err = l.supported(ctx); err != nil {
		return nil, facts, err
	}
	s, err := connect(ctx, l, o)
	if err != nil {
		return nil, facts, err
	}
	facts.Convention, facts.LoadFirst, err = s.convention(ctx, shape)
	if err != nil {
		s.close()
		return nil, facts, fmt.Errorf("find out the convention of gradients: %w", err)
	}
	facts.Downloads = facts.Convention.Scale > 0
	return s, facts, nil
}

// close ends the session. The models are unloaded by their owners, or by the server after a while.
func (s *session) close() {
	s.end()
	s.beats.Wait()
}
