package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/tool"
)

// Browse shows a document of the environment. A document with more tokens than the environment's setting is cut, and a
// last line says so. If the host has a Summariser, Browse shows the title and a summary for the episode's question.
//
// Source: 003 §4.4, which extracts at most 6,000 tokens of a page and has a model of the policy's size read them.
var Browse = Declaration{
	Spec: tool.Spec{
		Name: "browse", Doc: "shows the document with a title, as search names it",
		Schema: tool.SchemaOf[page](), Repeat: tool.Pure,
	},
	Reads: true,
	Open: func(h Host) (tool.Tool, error) {
		return browse{h.Library, h.Encode, h.Decode, h.Summaries}, nil
	},
}

// page holds the arguments of a call.
type page struct {
	Document string `json:"document" doc:"the title of the document"`
}

type browse struct {
	library env.Library
	encode  func(string) []int32
	decode  func([]int32) string
	// summaries is nil if documents are shown themselves.
	summaries Summariser
}

// shownTitle bounds how much of an unknown title a message repeats, in bytes.
const shownTitle = 80

// Spec describes the tool.
func (browse) Spec() tool.Spec { return Browse.Spec }

// Run reads the documents. A title that no document has is a failed call.
func (b browse) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	if b.library == nil && len(calls) > 0 {
		return nil, errNoLibrary
	}
	if b.summaries != nil {
		return b.summarised(ctx, calls)
	}
	return b.each(ctx, calls, func(_ string, d env.Document) string {
		return d.Title + "\n" + b.cut(d.Text, b.library.PageTokens())
	})
}

// each runs calls whose results are what shown makes of the documents. asked is the title as a call names it. Calls of
// shown may be concurrent.
func (b browse) each(ctx context.Context, calls []tool.Call, shown func(asked string, d env.Document) string) (
	[]tool.Result, error) {
	return tool.Each(ctx, calls, func(ctx context.Context, _ tool.Call, given page) (tool.Result, error) {
		d, ok, err := b.library.Document(ctx, given.Document)
		if err != nil {
			return tool.Result{}, fmt.Errorf("read a document: %w", err)
		}
		if !ok {
			return tool.Result{Status: tool.Failed, Stderr: unknownDocument(given.Document)}, nil
		}
		return tool.Result{Status: tool.OK, Stdout: shown(given.Document, d)}, nil
	})
}

func unknownDocument(title string) string {
	title = strings.TrimSpace(oneLine(title))
	if title == "" {
		return "the title is empty; search names titles"
	}
	if len(title) > shownTitle {
		title = strings.ToValidUTF8(title[:shownTitle], "") + "…"
	}
	return fmt.Sprintf("no document has the title %q; search names titles", title)
}

// cut returns at most so many tokens of a text, and a line that says so if there are more.
func (b browse) cut(text string, most int) string {
	head, whole := b.head(text, most)
	if whole {
		return text
	}
	return fmt.Sprintf("%s\n(The document goes on: these are its first %d tokens.)", head, most)
}

// head returns at most so many tokens of a text, and whether that is all of it. Without a tokenizer a token is a word.
func (b browse) head(text string, most int) (head string, whole bool) {
	if b.encode == nil {
		all := strings.Fields(text)
		if len(all) <= most {
			return text, true
		}
		return strings.Join(all[:most], " "), false
	}
	all := b.encode(text)
	if len(all) <= most {
		return text, true
	}
	return strings.ToValidUTF8(b.decode(all[:most]), ""), false // a character may have several tokens
}
