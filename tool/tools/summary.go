package tools

import (
	"context"
	"errors"
	"sync"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/tool"
)

// Summariser has a model sum up documents. Equal requests get equal summaries, whatever else is asked with them and
// before. It is safe for concurrent use.
type Summariser interface {
	// Summarise returns a summary for each request, in their order. An error means that the model, and no single
	// request, is at fault; no summary is valid then.
	Summarise(ctx context.Context, asked []Asked) ([]Summary, error)
}

// Asked is a request for a summary: what a document says about a question.
type Asked struct {
	Question string
	Document env.Document
}

// Summary is the answer to a request.
type Summary struct {
	Text   string
	Broken error // why there is no text; nil if there is one
}

// summarised runs the calls with summaries in the place of documents. A document is cut to the environment's setting
// before the model reads it.
func (b browse) summarised(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	var read sync.Map // title as asked for → env.Document
	results, err := b.each(ctx, calls, func(asked string, d env.Document) string {
		d.Text, _ = b.head(d.Text, b.library.PageTokens())
		read.Store(asked, d)
		return d.Title
	})
	broken := make(tool.CallErrors, len(calls))
	var some tool.CallErrors
	switch {
	case errors.As(err, &some):
		copy(broken, some)
	case err != nil:
		return nil, err
	}
	var at []int
	var asked []Asked
	for i, c := range calls {
		if broken[i] != nil || results[i].Status != tool.OK {
			continue
		}
		given, _ := tool.Decode[page](c.Arguments)
		if d, ok := read.Load(given.Document); ok {
			at, asked = append(at, i), append(asked, Asked{Question: c.Question, Document: d.(env.Document)})
		}
	}
	if len(asked) == 0 {
		return results, err
	}
	summaries, err := b.summaries.Summarise(ctx, asked)
	if err != nil {
		return nil, err
	}
	for j, i := range at {
		results[i].Stdout, broken[i] = asked[j].Document.Title+"\n"+summaries[j].Text, summaries[j].Broken
	}
	if err := tool.Blame(calls, broken); err != nil {
		return nil, err
	}
	return results, broken.OrNil()
}
