package servers

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Bounds of replies, in bytes.
const (
	mostReply = 16 << 20 // of anything but responses
	leastRow  = 64 << 10 // of a response, whatever its length
	perToken  = 2 << 10  // of a response, for each token: text, ids and log-probabilities
	perEvent  = 4 << 10  // of a stream, for each token: the same, and what each event repeats
)

// row is one response that is asked for.
type row struct {
	prefix      []int32
	stream      uint64
	maxTokens   int
	temperature float64
	cut         policy.Truncation
	stop        []int32
	// top likeliest tokens are named at the first topTokens tokens; 0 = none.
	top, topTokens int
}

// cost is what the row takes of a server's budget of tokens.
func (r row) cost() int { return len(r.prefix) + r.maxTokens }

// response is what a server has generated for a row.
type response struct {
	tokens    []int32
	logProbs  []float32   // nil if the server gives none
	entropies []float32   // likewise
	tops      [][]float32 // log-probabilities of the likeliest tokens, by position
	// finish is set by dialects of text, which do not know where a response of tokens ends; of other responses it is
	// found out (checkResponse).
	finish policy.Finish
}

// dialect speaks to one kind of server. Its methods may be called at once, except publish, which has the server to
// itself.
type dialect interface {
	// facts asks the server what it is and finds out what it can do.
	facts(ctx context.Context) (Facts, error)
	// row asks for one response. What comes is checked by the caller. With an error it returns the tokens that have
	// come before it, if it knows them.
	row(ctx context.Context, r row) (response, error)
	// score returns the log-probabilities at temperature 1 of all tokens but the first; nil if the server cannot (then
	// the dialect may be a drawer).
	score(ctx context.Context, ids []int32) ([]float32, error)
	// publish makes the server use a version. When it returns, requests that begin are answered with it.
	publish(ctx context.Context, v version) error
}

// version is a policy that is published.
type version struct {
	digest     string
	folder     string // the checkpoint; it may be deleted afterwards
	checkpoint *checkpoint.Checkpoint
}

// link is a server that is connected.
type link struct {
	Server
	client *openai.Client
	known  Facts
	digest string // of the version that it serves; "" if unknown
}

// get asks for facts, which are there at once or not at all.
func (l *link) get(ctx context.Context, path string, into any) error {
	return l.call(ctx, openai.Call{Method: http.MethodGet, Path: path, Limit: min(seconds(l.Seconds), factLimit)}, into)
}

// factLimit bounds the time of a question about the server.
const factLimit = 20 * time.Second

// generation asks for a response of so many tokens at most.
func (l *link) generation(ctx context.Context, path string, body any, tokens int, into any) error {
	return l.call(ctx, openai.Call{Method: http.MethodPost, Path: path, Body: body,
		Bytes: leastRow + perToken*int64(tokens)}, into)
}

// loading sends a request that may take as long as new weights do.
func (l *link) loading(ctx context.Context, path string, body, into any) error {
	return l.call(ctx, openai.Call{Method: http.MethodPost, Path: path, Body: body, Limit: seconds(l.LoadSeconds)},
		into)
}

func (l *link) call(ctx context.Context, c openai.Call, into any) error {
	data, err := l.client.Do(ctx, c)
	if err != nil {
		return l.named(err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return l.fault("its reply to %s is not the JSON that was expected: %v", c.Path, badinput.JSON(err))
	}
	return nil
}

// dialects makes the dialect of each kind.
var dialects = map[string]func(*link) dialect{
	KindRopewalk: func(l *link) dialect { return &ropewalk{l} },
	KindLlama:    func(l *link) dialect { return &llama{link: l} },
	KindVLLM:     func(l *link) dialect { return &vllm{l} },
	KindSGLang:   func(l *link) dialect { return &sglang{link: l} },
	KindTensorRT: func(l *link) dialect { return &tensorrt{l} },
	KindOpenAI:   func(l *link) dialect { return &text{link: l} },
	KindChat:     func(l *link) dialect { return &chat{text: text{link: l}} },
}
