package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/tool"
)

// Browse shows a document of the environment. A document with more tokens than the environment's setting is cut, and a
// last line says so.
//
// Source: 003 §4.4, which extracts at most 6,000 tokens of a page. Departure: AEPO lets a model of the policy's size
// summarise the page; here the policy reads the page itself.
var Browse = Declaration{
	Spec: tool.Spec{
		Name: "browse", Doc: "shows the document with a title, as search names it",
		Schema: tool.SchemaOf[page](), Repeat: tool.Pure,
	},
	Reads: true,
	Open:  func(h Host) (tool.Tool, error) { return browse{h.Library, h.Encode, h.Decode}, nil },
}

// page holds the arguments of a call.
type page struct {
	Document string `json:"document" doc:"the title of the document"`
}

type browse struct {
	library env.Library
	encode  func(string) []int32
	decode  func([]int32) string
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
	return tool.Each(ctx, calls, func(ctx context.Context, _ tool.Call, given page) (tool.Result, error) {
		d, ok, err := b.library.Document(ctx, given.Document)
		if err != nil {
			return tool.Result{}, fmt.Errorf("read a document: %w", err)
		}
		if !ok {
			return tool.Result{Status: tool.Failed, Stderr: unknownDocument(given.Document)}, nil
		}
		return tool.Result{Status: tool.OK, Stdout: d.Title + "\n" + b.cut(d.Text, b.library.PageTokens())}, nil
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

// cut returns at most so many tokens of a text. Without a tokenizer a token is a word.
func (b browse) cut(text string, most int) string {
	var head string
	if b.encode == nil {
		all := strings.Fields(text)
		if len(all) <= most {
			return text
		}
		head = strings.Join(all[:most], " ")
	} else {
		all := b.encode(text)
		if len(all) <= most {
			return text
		}
		head = strings.ToValidUTF8(b.decode(all[:most]), "") // a character may have several tokens
	}
	return fmt.Sprintf("%s\n(The document goes on: these are its first %d tokens.)", head, most)
}
