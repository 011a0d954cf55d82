package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// shelf is a library of two documents. Nothing is found for "nothing", and it breaks at "break".
type shelf struct{ broken error }

func (s shelf) Search(_ context.Context, query string) ([]env.Hit, error) {
	if s.broken != nil || query == "break" {
		return nil, errors.Join(s.broken, errors.New("the index is gone"))
	}
	if query == "nothing" {
		return nil, nil
	}
	return []env.Hit{{Title: "Ada", Snippet: "Born in\nNorwick."}, {Title: "Norwick", Snippet: "On the Velm."}}, nil
}

func (s shelf) Document(_ context.Context, title string) (env.Document, bool, error) {
	if s.broken != nil || title == "break" {
		return env.Document{}, false, errors.Join(s.broken, errors.New("the page is gone"))
	}
	if title != "Ada" {
		return env.Document{}, false, nil
	}
	return env.Document{Title: "Ada", Text: "One two three four five."}, true, nil
}

func (shelf) PageTokens() int { return 3 }

func library(t *testing.T, of tools.Declaration, l env.Library) tool.Tool {
	t.Helper()
	opened, err := of.Open(tools.Host{Library: l})
	require.NoError(t, err)
	return opened
}

func TestSearch(t *testing.T) {
	tooltest.Run(t, tooltest.Subject{Tool: library(t, tools.Search, shelf{}),
		Good:     []string{`{"query": "Ada"}`, `{"query": "nothing"}`},
		Breaking: `{"query": "break"}`, Broken: library(t, tools.Search, shelf{errors.New("no disk")})})
}

func TestBrowse(t *testing.T) {
	tooltest.Run(t, tooltest.Subject{Tool: library(t, tools.Browse, shelf{}),
		Good:     []string{`{"document": "Ada"}`, `{"document": "Bob"}`, `{"document": " "}`},
		Breaking: `{"document": "break"}`, Broken: library(t, tools.Browse, shelf{errors.New("no disk")})})
}

// What a policy reads: one line for each result, a page that says where it was cut, and what was wrong with a call.
func TestTextsOfTheLibrary(t *testing.T) {
	say := func(of tools.Declaration, arguments string) (tool.Status, string) {
		got, err := library(t, of, shelf{}).Run(t.Context(), []tool.Call{{Tool: of.Name,
			Arguments: []byte(arguments)}})
		require.NoError(t, err)
		return got[0].Status, got[0].Stdout + got[0].Stderr
	}
	for _, c := range []struct {
		of        tools.Declaration
		arguments string
		status    tool.Status
		text      string
	}{
		{tools.Search, `{"query": "Ada"}`, tool.OK, "Ada: Born in Norwick.\nNorwick: On the Velm."},
		{tools.Search, `{"query": "nothing"}`, tool.OK, "No document has these words."},
		{tools.Search, `{"query": " "}`, tool.Failed, "the query is empty; write the words to look for"},
		{tools.Browse, `{"document": "Ada"}`, tool.OK,
			"Ada\nOne two three\n(The document goes on: these are its first 3 tokens.)"},
		{tools.Browse, `{"document": "Bob\n"}`, tool.Failed,
			`no document has the title "Bob"; search names titles`},
		{tools.Browse, `{"document": ""}`, tool.Failed, "the title is empty; search names titles"},
		{tools.Browse, `{"document": "` + strings.Repeat("é", 1000) + `"}`, tool.Failed,
			`no document has the title "` + strings.Repeat("é", 40) + `…"; search names titles`},
	} {
		status, text := say(c.of, c.arguments)
		require.Equal(t, c.status, status, c.arguments)
		require.Equal(t, c.text, text, c.arguments)
	}
}

// A document is measured in the policy's tokens, and a cut never leaves half a character.
func TestPagesAreCutByTokens(t *testing.T) {
	cut := func(text string) string {
		opened, err := tools.Browse.Open(tools.Host{Library: page(text),
			Encode: func(text string) (ids []int32) {
				for _, b := range []byte(text) {
					ids = append(ids, int32(b))
				}
				return ids
			},
			Decode: func(ids []int32) string {
				var out []byte
				for _, id := range ids {
					out = append(out, byte(id))
				}
				return string(out)
			}})
		require.NoError(t, err)
		got, err := opened.Run(t.Context(), []tool.Call{{Arguments: []byte(`{"document": "x"}`)}})
		require.NoError(t, err)
		return got[0].Stdout
	}
	require.Equal(t, "x\nabcde", cut("abcde"))
	require.Equal(t, "x\nabcd\n(The document goes on: these are its first 5 tokens.)", cut("abcdé"))
}

// page is a library of one document.
type page string

func (page) Search(context.Context, string) ([]env.Hit, error) { return nil, nil }

func (p page) Document(context.Context, string) (env.Document, bool, error) {
	return env.Document{Title: "x", Text: string(p)}, true, nil
}

func (page) PageTokens() int { return 5 }

// A worker whose environment has no documents is broken, and no call is to blame.
func TestNoLibrary(t *testing.T) {
	for _, of := range []tools.Declaration{tools.Search, tools.Browse} {
		_, err := library(t, of, nil).Run(t.Context(), []tool.Call{{Arguments: []byte(`{}`)}})
		require.ErrorContains(t, err, "the environment has no documents")
	}
}

// reader sums up a document by its question and its first bytes. It breaks where the question is "break".
type reader struct{ lost error }

func (r reader) Summarise(_ context.Context, asked []tools.Asked) ([]tools.Summary, error) {
	out := make([]tools.Summary, len(asked))
	for i, a := range asked {
		out[i].Text = a.Question + " " + a.Document.Text
		if a.Question == "break" {
			out[i].Broken = errors.New("no number")
		}
	}
	return out, r.lost
}

// A host with a Summariser has browse show the title and a summary, of a page that is cut first.
func TestBrowseShowsSummaries(t *testing.T) {
	open := func(l shelf, r reader) tool.Tool {
		opened, err := tools.Browse.Open(tools.Host{Library: l, Summaries: r})
		require.NoError(t, err)
		return opened
	}
	whole := open(shelf{}, reader{})
	tooltest.Run(t, tooltest.Subject{Tool: whole,
		Good:     []string{`{"document": "Ada"}`, `{"document": "Bob"}`, `{"document": " "}`},
		Breaking: `{"document": "break"}`, Broken: open(shelf{errors.New("no disk")}, reader{})})
	ada := func(question string) tool.Call {
		return tool.Call{Question: question, Arguments: []byte(`{"document": "Ada"}`)}
	}
	calls := []tool.Call{ada("Who?"), {Arguments: []byte(`{"document": "Bob"}`)}, ada("break"), ada("What?")}
	got, err := whole.Run(t.Context(), calls)
	var broken tool.CallErrors
	require.ErrorAs(t, err, &broken)
	require.Len(t, broken.Unwrap(), 1)
	require.ErrorContains(t, broken[2], "no number")
	require.Equal(t, "Ada\nWho? One two three", got[0].Stdout)
	require.Equal(t, tool.Failed, got[1].Status)
	require.Equal(t, "Ada\nWhat? One two three", got[3].Stdout)
	_, err = open(shelf{}, reader{errors.New("lost")}).Run(t.Context(), calls)
	require.EqualError(t, err, "lost")
}
