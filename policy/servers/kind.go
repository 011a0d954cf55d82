package servers

import (
	"context"
	"math"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// What a server's log-probabilities are the log-probabilities of is found out by asking, because servers have settings
// for it that they do not tell.

// probePrefix is what the server is asked to continue.
var probePrefix = []int32{1, 2, 3}

// warm is the temperature with which the kind of log-probabilities is found out.
const warm = 0.25

// gapAt asks for the difference of the log-probabilities of the two likeliest tokens after the probePrefix.
type gapAt func(ctx context.Context, temperature float64) (float64, error)

// explore adds to the facts what asking shows. The gap grows at a low temperature if log-probabilities are of the
// tempered distribution (vLLM's --logprobs-mode processed_logprobs), and stays if they are the model's own.
func (l *link) explore(ctx context.Context, d dialect, ask gapAt, f Facts) (Facts, error) {
	gap, err := ask(ctx, 1)
	if err != nil {
		return Facts{}, err
	}
	cold, err := ask(ctx, warm)
	if err != nil {
		return Facts{}, err
	}
	f.LogProbs = LogProbsModel
	if math.Abs(cold-gap/warm) < math.Abs(cold-gap) {
		f.LogProbs = LogProbsSampling
	}
	f.Capabilities = capabilitiesOf(f.LogProbs)
	if l.Folder != "" {
		f.Capabilities.Weights = policy.WeightsReload
	}
	err = l.findCuts(ctx, d, gap, &f)
	return f, err
}

// gapOf is the difference of the two greatest of several log-probabilities.
func gapOf(top map[string]float32) float64 {
	first, second := math.Inf(-1), math.Inf(-1)
	for _, v := range top {
		switch v := float64(v); {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	return first - second
}

// certain is the log-probability above which a token is the only one.
const certain = -0.01

// findCuts finds out which limits of sampling the log-probabilities follow: under a limit that leaves the likeliest
// token alone, its log-probability is 0 if they do. gap is that of the two likeliest tokens at temperature 1; the
// temperature of the questions makes it 1 at most, so that without the limit no token is nearly certain.
func (l *link) findCuts(ctx context.Context, d dialect, gap float64, f *Facts) error {
	if f.LogProbs != LogProbsSampling {
		return nil
	}
	for _, c := range []struct {
		cut policy.Truncation
		has *bool
	}{
		{policy.Truncation{TopK: 1}, &f.Capabilities.TopK},
		{policy.Truncation{TopP: 1e-6}, &f.Capabilities.TopP},
		{policy.Truncation{MinP: 1}, &f.Capabilities.MinP},
	} {
		out, err := d.row(ctx, row{prefix: probePrefix, maxTokens: 1, temperature: max(1, gap), cut: c.cut})
		switch {
		case kindOf(err) == openai.Rejected: // it has no such limit
		case err != nil:
			return err
		case len(out.logProbs) != 1:
			return l.fault("its response has %d log-probabilities, want 1", len(out.logProbs))
		default:
			*c.has = out.logProbs[0] > certain
		}
	}
	return nil
}
