package policy

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Sampler generates with published policies. Calls obey their context and return typed errors (see ErrLost and its
// neighbours). Several callers may call at once; the sampler decides whether their calls take turns. It never retries a
// call; one of several servers may ask another server for a row that one of them has lost. Every call may be repeated;
// Generate then returns the same tokens if the sampler states RowSeeds. The caller that opened the sampler closes it.
type Sampler interface {
	// Load publishes the checkpoint folder dir under role: the Generate calls that start after Load has returned use
	// its weights, and Load waits for those that have started. How the weights get there is Capabilities.Weights. The
	// folder may be deleted after Load has returned. optimizer is for engines that also train (Trainer.Load); a sampler
	// that does not train ignores it. It may refuse every role but RolePolicy with ErrBadRequest, except RoleReference
	// if it states Capabilities.Reference. A Load that fails changes nothing.
	Load(ctx context.Context, role Role, dir string, optimizer bool) error
	// Generate writes one response for each prefix of the request. A prefix and its budget together may be as long as
	// the model's positions. A role under which nothing is loaded is ErrNotLoaded, a request that cannot be served as
	// it is written is ErrBadRequest, and a failure of the whole sampler is ErrLost or ErrOutOfMemory. Other errors may
	// be the fault of a row: the caller then tries parts of the request.
	Generate(ctx context.Context, req GenerateRequest) (Generated, error)
	// Capabilities states what the sampler can do. The answer does not change while the sampler is open.
	Capabilities() Capabilities
	// State describes the model that is loaded under role: at least its Digest, which is that of the folder that the
	// last Load published. It is the zero State if nothing is loaded. Step and Params are 0 if the sampler cannot know
	// them.
	State(ctx context.Context, role Role) (State, error)
	// Describe names the device and its numerical library for the record, for example cpu, 2 threads, openblas 0.3.21.
	Describe() Description
	// Close releases the sampler's models and devices. Later calls return ErrLost.
	Close() error
}

// Room is what a sampler has room for at once: rows, and tokens of prefixes and responses. 0 = no limit is known.
type Room struct{ Rows, Tokens int }

// Sized is a sampler that knows its room, which changes as servers are lost and come back.
type Sized interface {
	// Room returns the room at the moment.
	Room() Room
}

// Finish says why a generated row ended.
type Finish string

// Reasons a row ends: it emitted a stop token, or its budget was used up.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
)

// GenerateRequest asks for one response per prefix.
type GenerateRequest struct {
	Role     Role
	Prefixes [][]int32 // [rows][prefix length ≥ 1]
	// Streams seeds each row. All random draws of a row come from its stream and do not depend on the rest of the
	// batch, if the sampler states RowSeeds.
	Streams []uint64 // [rows]
	// MaxTokens is the budget of new tokens of each row, ≥ 1.
	MaxTokens []int // [rows]
	// Temperature divides the logits. 0 takes the most likely token; log-probs and entropies are then those of
	// temperature 1.
	Temperature float64
	// Truncation leaves the likeliest tokens of the tempered distribution. At temperature 0 it has no effect. A sampler
	// refuses what its capabilities do not include with ErrBadRequest.
	Truncation Truncation
	// Stop holds the ids that end a row; the stop token is part of the response.
	Stop []int32
	// Top asks for the log-probabilities of the Top likeliest tokens at each of the first TopTokens tokens of every
	// row. 0 asks for none. More than Capabilities.TopLogProbs is ErrBadRequest.
	Top, TopTokens int
	// Evaluation says that the rows belong to an evaluation. A sampler that more callers use than it has room for
	// prefers the rows of training, and leaves none waiting for ever.
	Evaluation bool
}

// Generated holds one response per row of the request.
type Generated struct {
	Tokens    [][]int32   // [rows][n], including the stop token
	LogProbs  [][]float32 // [rows][n], natural log under the tempered, truncated distribution
	Entropies [][]float32 // [rows][n], nats, under the same distribution; nil if Capabilities.Entropy is EntropyNone
	Finish    []Finish    // [rows]
	// Top holds what GenerateRequest.Top asks for, under the distribution that the tokens were drawn from, the
	// likeliest first: [rows][min(n, TopTokens)][at most Top]. Fewer are there where a truncation or the vocabulary
	// leaves fewer tokens. It is nil if nothing is asked for.
	Top [][][]float32
}

// Check returns ErrBadRequest for what no sampler takes: lists of other lengths than the prefixes, a temperature or
// truncation out of range, more likeliest tokens than the sampler offers, or at no position.
func (r GenerateRequest) Check(mostTop int) error {
	switch n := len(r.Prefixes); {
	case len(r.Streams) != n || len(r.MaxTokens) != n:
		return fmt.Errorf("%w: %d prefixes, %d streams, %d budgets", ErrBadRequest, n, len(r.Streams), len(r.MaxTokens))
	case !(r.Temperature >= 0) || math.IsInf(r.Temperature, 0):
		return fmt.Errorf("%w: temperature is %v", ErrBadRequest, r.Temperature)
	case r.Top < 0 || r.Top > mostTop:
		return fmt.Errorf("%w: %d likeliest tokens, of at most %d", ErrBadRequest, r.Top, mostTop)
	case r.Top > 0 && r.TopTokens < 1:
		return fmt.Errorf("%w: likeliest tokens at the first %d tokens", ErrBadRequest, r.TopTokens)
	}
	return r.Truncation.Validate()
}

// CheckTokens returns an error about the first id that a vocabulary does not have.
func CheckTokens(vocab int, ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("token %d is %d, the vocabulary has %d", i, id, vocab)
		}
	}
	return nil
}

// Ending checks the tokens of a response with a budget and returns why it has ended, which a server may have said. An
// error goes on after the words "its response".
func Ending(vocab, budget int, stop, tokens []int32, said Finish) (Finish, error) {
	n := len(tokens)
	if n == 0 || n > budget {
		return "", fmt.Errorf(" has %d tokens, want 1 to %d", n, budget)
	}
	if err := CheckTokens(vocab, tokens); err != nil {
		return "", fmt.Errorf(": %w", err)
	}
	end := slices.IndexFunc(tokens, func(id int32) bool { return slices.Contains(stop, id) })
	switch {
	case said != "":
		return said, nil
	case end >= 0 && end < n-1:
		return "", fmt.Errorf(" goes on for %d tokens after the stop token %d", n-1-end, tokens[end])
	case end >= 0:
		return FinishStop, nil
	case n == budget:
		return FinishLength, nil
	}
	return "", fmt.Errorf(" ends after %d of %d tokens without a stop token", n, budget)
}
