package policy

import (
	"context"
	"errors"
)

// ErrFull says that a batch has no room for a row until others have ended.
var ErrFull = errors.New("the batch is full")

// Batcher is a sampler that can also generate rows which come and go: what a server needs.
type Batcher interface {
	Sampler
	// Batch opens a batch of the model that is loaded under role. The caller closes it. A Load or a Step under the role
	// ends it: later calls return ErrWrongVersion.
	Batch(ctx context.Context, role Role, o BatchOptions) (Batch, error)
}

// BatchOptions bound a batch.
type BatchOptions struct {
	// Rows is the greatest number of rows at once; 0 means 64.
	Rows int
	// Tokens is the number of tokens whose keys and values are held at once, for rows and for prefixes that later rows
	// may begin with; 0 means as many as fit in 1 GiB and can be of use, and those of one whole sequence at least.
	Tokens int
	// Longest is the length of the longest sequence that a row can become; 0 = what the model reads. If Tokens is 0, a
	// batch with Longest has room for so many tokens of each row and none besides.
	Longest int
}

// Batch generates rows that join and leave between steps. A row's tokens follow from the row and the weights alone, as
// Sampler.Generate returns them. Calls take turns with those of the sampler. A caller that uses one batch from several
// goroutines orders the calls itself.
type Batch interface {
	// Add lets a row join and returns its number. ErrFull means that the row can join when others have left, and
	// ErrBadRequest that it cannot join at all.
	Add(ctx context.Context, row BatchRow) (int64, error)
	// Step goes on with all rows: a piece of the prefixes that are not read yet, and one token of each row whose prefix
	// is read. It returns what is new. Rows that have ended have left. Without rows it does nothing.
	Step(ctx context.Context) ([]BatchEvent, error)
	// Remove takes a row out before its end. A row that has left is no error.
	Remove(ctx context.Context, row int64) error
	// Usage says what the batch holds now and what it has done so far.
	Usage() BatchUsage
	// Close ends the batch and frees its memory.
	Close() error
}

// BatchRow is a response that is asked for.
type BatchRow struct {
	Prefix      []int32
	Stream      uint64 // all random draws of the row come from it
	MaxTokens   int    // budget of new tokens; 0 reads the prefix only, which Score needs
	Temperature float64
	Truncation  Truncation
	Stop        []int32 // ids that end the row; the stop token is part of the response
	// Top is the number of likeliest tokens that are named at each position, or, if TopTokens is not 0, at each of so
	// many first tokens of the response.
	Top, TopTokens int
	// Score asks for the log-probabilities of the prefix's own tokens at temperature 1.
	Score bool
}

// TokenLogProb is a token that could have come at some position.
type TokenLogProb struct {
	Token   int32
	LogProb float32
}

// BatchEvent is what a step brought for one row.
type BatchEvent struct {
	Row int64
	// Scores are those of further tokens of the prefix, in order, the first one left out. They come before the tokens.
	Scores []BatchScore
	// Sampled reports whether there is a new token.
	Sampled  bool
	Token    int32
	LogProb  float32 // natural log under the tempered, truncated distribution
	Entropy  float32 // nats, under the same distribution
	Top      []TokenLogProb
	Finish   Finish // "" while the row goes on; FinishLength of a row without a budget whose prefix is read
	Err      error  // the row's own fault, which ended it
	Reused   int    // tokens of the prefix that were not computed again; with the event that ends the prefix
	Prefixed bool   // whether the whole prefix is read since this step
}

// BatchScore is the log-probability of one token of a prefix, given those before it.
type BatchScore struct {
	LogProb float32
	Top     []TokenLogProb
}

// BatchUsage counts what a batch holds and has done.
type BatchUsage struct {
	Rows         int   // rows in the batch now
	Held         int   // tokens of keys and values that rows have reserved
	Kept         int   // tokens of keys and values that are kept for later rows
	Tokens       int   // tokens of keys and values that there is room for
	PrefixTokens int64 // tokens of prefixes so far, those that were reused included
	ReusedTokens int64 // tokens of prefixes that were not computed again so far
	NewTokens    int64 // sampled tokens so far
}
