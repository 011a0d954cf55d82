package summary

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Writer writes summaries with one model. It holds no state, so concurrent calls are safe.
type Writer struct {
	Chat      protocol.Chat   // the model's chat format
	Tokens    tokenizer.Codec // the model's tokenizer
	Stops     []int32         // the tokens that end a response
	Positions int             // the longest sequence that the model reads
	Most      int             // tokens of a summary at most
	Role      policy.Role     // the role under which the model is loaded
}

// Generate asks the model.
type Generate func(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error)

// These bound the memory of one request to the engine: the number of its rows, and of the tokens that its rows may
// have together. A single row may have as many as the model reads.
const (
	rowsAtOnce   = 64
	tokensAtOnce = 1 << 15
)

// Write sums up the documents. Equal requests are generated once.
func (w Writer) Write(ctx context.Context, generate Generate, asked []tools.Asked) ([]tools.Summary, error) {
	out := make([]tools.Summary, len(asked))
	var prefixes [][]int32
	places := map[string]int{} // of the distinct requests
	place := make([]int, len(asked))
	for i, a := range asked {
		text, ids, err := w.fit(a)
		if err != nil {
			return nil, err
		}
		at, ok := places[text]
		if !ok {
			at = len(prefixes)
			places[text], prefixes = at, append(prefixes, ids)
		}
		place[i] = at
	}
	written := make([]tools.Summary, len(prefixes))
	for from := 0; from < len(prefixes); {
		to := w.batch(prefixes, from)
		if err := w.try(ctx, generate, prefixes[from:to], written[from:to]); err != nil {
			return nil, err
		}
		from = to
	}
	for i, at := range place {
		out[i] = written[at]
	}
	return out, nil
}

// batch returns the end of the batch of requests that begins at from.
func (w Writer) batch(prefixes [][]int32, from int) int {
	tokens, to := 0, from
	for to < len(prefixes) && to-from < rowsAtOnce {
		if tokens += len(prefixes[to]) + w.Most; tokens > tokensAtOnce && to > from {
			break
		}
		to++
	}
	return to
}

// try fills in the summaries of a batch. If the batch fails and the engine is not to blame, it asks for each summary
// alone.
func (w Writer) try(ctx context.Context, generate Generate, prefixes [][]int32, out []tools.Summary) error {
	err := w.ask(ctx, generate, prefixes, out)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || engineBroke(err):
		return fmt.Errorf("sum up %d documents: %w", len(prefixes), err)
	case len(prefixes) == 1:
		out[0] = tools.Summary{Broken: fmt.Errorf("sum up a document: %w", err)}
		return nil
	}
	for i := range prefixes {
		if err := w.try(ctx, generate, prefixes[i:i+1], out[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// engineBroke reports whether no single request can be at fault.
func engineBroke(err error) bool {
	for _, whole := range []error{policy.ErrLost, policy.ErrOutOfMemory, policy.ErrNotLoaded, policy.ErrBadRequest} {
		if errors.Is(err, whole) {
			return true
		}
	}
	return false
}

// ask generates the summaries of a batch.
func (w Writer) ask(ctx context.Context, generate Generate, prefixes [][]int32, out []tools.Summary) error {
	n := len(prefixes)
	req := policy.GenerateRequest{Role: w.Role, Prefixes: prefixes, Streams: make([]uint64, n), Stop: w.Stops,
		MaxTokens: make([]int, n)} // temperature 0 draws nothing, so that rows need no streams of their own
	for i := range req.MaxTokens {
		req.MaxTokens[i] = w.Most
	}
	g, err := generate(ctx, req)
	if err != nil {
		return err
	}
	if len(g.Tokens) != n || len(g.Finish) != n {
		return fmt.Errorf("the model gave %d responses to %d requests", len(g.Tokens), n)
	}
	for i, ids := range g.Tokens {
		if err := w.Tokens.Check(ids); err != nil {
			return err
		}
		if g.Finish[i] == policy.FinishStop && len(ids) > 0 {
			ids = ids[:len(ids)-1]
		}
		out[i] = tools.Summary{Text: strings.TrimSpace(strings.ToValidUTF8(w.Tokens.Decode(ids), "\uFFFD"))}
	}
	return nil
}

// fit makes the request for a summary. It cuts the page to what the model can read in addition to the question and the
// summary.
func (w Writer) fit(a tools.Asked) (text string, ids []int32, err error) {
	room, page := w.Positions-w.Most, w.Tokens.Encode(a.Document.Text)
	for {
		if text, err = w.request(a.Question, a.Document); err != nil {
			return "", nil, fmt.Errorf("ask for a summary: %w", err)
		}
		ids = w.Tokens.Encode(text)
		over := len(ids) - room
		if over <= 0 {
			return text, ids, nil
		}
		// A token of the page may be several once its tags are made harmless, so that as many may be too many to cut.
		if page = page[:len(page)-min(over, (len(page)+1)/2)]; len(page) == 0 {
			return "", nil, badinput.Errorf("environment: summary_tokens: %d tokens of summary and the request with "+
				"the question leave no room for a document in the %d positions of the model", w.Most, w.Positions)
		}
		a.Document.Text = strings.ToValidUTF8(w.Tokens.Decode(page), "") // a character may have several tokens
	}
}

// request renders a request. The chat format keeps text of the question and the page from being taken for its tags.
func (w Writer) request(question string, d env.Document) (string, error) {
	task := "Question: " + question + "\nPage: " + d.Title + "\n" + d.Text + "\nSum up what answers the question."
	return w.Chat.Render(protocol.View{Task: task, Tools: []protocol.Tool{}})
}
