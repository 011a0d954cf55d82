package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/tool"
)

// Search finds documents of the environment. A result is a line with a document's title and a part of its text. The
// environment's settings bound the number of results and their length.
var Search = Declaration{
	Spec: tool.Spec{
		Name:    "search",
		Aliases: []string{"wiki_search"}, // the name in PRS's prompt
		Doc:     "finds documents by words; a line of the result is a title and a part of its text",
		Schema:  tool.SchemaOf[query](), Repeat: tool.Pure,
	},
	Reads: true,
	Open:  func(h Host) (tool.Tool, error) { return search{h.Library}, nil },
}

// query holds the arguments of a search.
type query struct {
	Query string `json:"query" doc:"the words to look for"`
}

type search struct{ library env.Library }

// errNoLibrary means that a recipe's environment has no documents. Recipes are checked for it.
var errNoLibrary = errors.New("the environment has no documents")

// Spec describes the tool.
func (search) Spec() tool.Spec { return Search.Spec }

// Run runs the searches. A query without words is a failed call, and a query that finds nothing is not.
func (s search) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	if s.library == nil && len(calls) > 0 {
		return nil, errNoLibrary
	}
	return tool.Each(ctx, calls, func(ctx context.Context, _ tool.Call, given query) (tool.Result, error) {
		if strings.TrimSpace(given.Query) == "" {
			return tool.Result{Status: tool.Failed, Stderr: "the query is empty; write the words to look for"}, nil
		}
		hits, err := s.library.Search(ctx, given.Query)
		if err != nil {
			return tool.Result{}, fmt.Errorf("search the documents: %w", err)
		}
		if len(hits) == 0 {
			return tool.Result{Status: tool.OK, Stdout: "No document has these words."}, nil
		}
		lines := make([]string, len(hits))
		for i, h := range hits {
			lines[i] = oneLine(h.Title) + ": " + oneLine(h.Snippet)
		}
		return tool.Result{Status: tool.OK, Stdout: strings.Join(lines, "\n")}, nil
	})
}

// oneLine joins the lines of a text, so that a result of a search stays one line.
func oneLine(text string) string { return strings.Join(strings.FieldsFunc(text, isBreak), " ") }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }
