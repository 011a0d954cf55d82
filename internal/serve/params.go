package serve

import (
	"math"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// Bounds of what a request can ask for.
const (
	mostChoices  = 1024
	mostTop      = 20 // likeliest tokens at each position
	mostStops    = 32
	mostStopIDs  = 256
	leastHeat    = 1e-3 // below it, other temperatures than 0 overflow
	usualLength  = 16   // new tokens of a completion that does not say how many
	mostTemplate = 64   // further names for a chat template
)

// params are the fields that both kinds of request have.
type params struct {
	n           int
	budget      int // −1: as much as the context has left
	temperature float64
	cut         policy.Truncation
	seeds       []uint64 // of one choice each, or the seed from which those of all choices follow
	stop        []string
	stopIDs     []int32
	keepStop    bool // whether the text ends with the stop text that was found
	ignoreEOS   bool
	skipSpecial bool
	stream      bool
	usage       bool // whether a stream ends with the usage
	ids         bool // whether the answer has token ids
	idNames     bool // whether tokens are named by their ids
	entropies   bool
	logProbs    bool
	top         int
	thinks      bool // whether the prompt has begun the reasoning of the reply
	// form is the form of calls, if the request has tools: its marks stay in texts although they are special tokens.
	form  *toolcall.Form
	tools []toolcall.Tool
}

// readParams reads them.
func readParams(f *fields, m *Model) params {
	p := params{
		n:           f.whole("n", 1, 1, mostChoices),
		temperature: f.number("temperature", 1, 0, math.MaxFloat32),
		cut: policy.Truncation{
			TopK: max(f.whole("top_k", 0, -1, math.MaxInt32), 0), TopP: f.number("top_p", 1, 0, 1),
			MinP: f.number("min_p", 0, 0, 1),
		},
		seeds:       f.seeds("seed"),
		stop:        f.texts("stop", mostStops),
		keepStop:    f.boolean("include_stop_str_in_output", false),
		ignoreEOS:   f.boolean("ignore_eos", false),
		skipSpecial: f.boolean("skip_special_tokens", true),
		stream:      f.boolean("stream", false),
		ids:         f.boolean("return_token_ids", false),
		idNames:     f.boolean("return_tokens_as_token_ids", false),
		entropies:   f.boolean("return_entropies", false),
	}
	if p.temperature > 0 && p.temperature < leastHeat {
		f.fail(invalid("temperature", "must be 0, or %v at least, got %v", leastHeat, p.temperature))
	}
	if _, given := f.raw["top_p"]; given && p.cut.TopP == 0 {
		f.fail(invalid("top_p", "must be above 0"))
	}
	for _, s := range p.stop {
		if s == "" {
			f.fail(invalid("stop", "a stop text must not be empty"))
		}
	}
	if f.read("stop_token_ids", &p.stopIDs, "a list of token ids") {
		if len(p.stopIDs) > mostStopIDs {
			f.fail(invalid("stop_token_ids", "must have at most %d entries, got %d", mostStopIDs, len(p.stopIDs)))
		} else if err := m.Tokens.Check(p.stopIDs); err != nil {
			f.fail(invalid("stop_token_ids", "%v", err))
		}
	}
	var options struct {
		Usage bool `json:"include_usage"`
	}
	if f.read("stream_options", &options, "an object") && !p.stream {
		f.fail(invalid("stream_options", "belongs to a stream"))
	}
	p.usage = options.Usage
	const no = "is not supported"
	f.only("logit_bias", no, "{}")
	for _, name := range []string{"presence_penalty", "frequency_penalty"} {
		f.only(name, no, "0", "0.0")
	}
	f.only("repetition_penalty", no, "1", "1.0")
	f.only("use_beam_search", no, "false")
	f.ignore("model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key")
	return p
}

// checkModel refuses a request for another model.
func (f *fields) checkModel(name string) {
	var asked string
	if f.read("model", &asked, "a text") && asked != name {
		if len(asked) > 200 {
			asked = asked[:200]
		}
		e := invalid("model", "there is no model %q; this server has %q", asked, name).coded("model_not_found")
		e.status, e.Type = 404, typeNotFound
		f.fail(e)
	}
}

// rows makes the rows of one prompt. first is the number of the prompt's first choice.
func (p *params) rows(prompt []int32, first, context int, m *Model) ([]policy.BatchRow, *apiError) {
	budget := p.budget
	if left := context - len(prompt); budget < 0 {
		budget = left
	}
	if len(prompt) == 0 {
		return nil, invalid("prompt", "must not be empty")
	}
	if err := m.Tokens.Check(prompt); err != nil {
		return nil, invalid("prompt", "%v", err)
	}
	if len(prompt)+budget > context || budget < 0 || p.budget < 0 && budget == 0 {
		return nil, invalid("prompt", "has %d tokens, and %d new ones are asked for; the context has %d", len(prompt),
			max(p.budget, 1), context).coded("context_length_exceeded")
	}
	out := make([]policy.BatchRow, p.n)
	for i := range out {
		out[i] = policy.BatchRow{
			Prefix: prompt, Stream: p.stream64(first, i), MaxTokens: budget, Temperature: p.temperature,
			Truncation: p.cut, Stop: p.stopIDs, Top: p.top,
		}
		if !p.ignoreEOS {
			out[i].Stop = append(append([]int32(nil), p.stopIDs...), m.stop...)
		}
	}
	return out, nil
}

// stream64 is the stream of choice i of a prompt. The first choice has the seed itself, so that a request for one
// choice gets what Generate returns for that stream.
func (p *params) stream64(first, i int) uint64 {
	switch {
	case len(p.seeds) == 0:
		return rand.Uint64()
	case len(p.seeds) > 1:
		return p.seeds[first+i]
	case i == 0:
		return p.seeds[0]
	}
	return rand.NewPCG(p.seeds[0], uint64(i)).Uint64()
}
