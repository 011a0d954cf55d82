package searchqa

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
)

// queryBytes bounds what is searched for. The rest of a longer query is ignored, so that every search takes about the
// same time.
const queryBytes = 512

// Search returns the documents that fit a query best.
func (e *Environment) Search(ctx context.Context, query string) ([]env.Hit, error) {
	x, err := e.corpus.find()
	if err != nil {
		return nil, err
	}
	query = short(query, queryBytes)
	found, err := x.search(ctx, query, e.settings.Results)
	if err != nil {
		return nil, err
	}
	terms := terms(query)
	out := make([]env.Hit, len(found))
	for i, at := range found {
		d := e.corpus.entities[at]
		out[i] = env.Hit{Title: d.title, Snippet: snippet(d.sentences, terms, e.settings.Snippet)}
	}
	return out, nil
}

// Document returns the document with that title. Capitals and surrounding spaces do not matter.
func (e *Environment) Document(ctx context.Context, title string) (env.Document, bool, error) {
	if err := ctx.Err(); err != nil {
		return env.Document{}, false, err
	}
	i, ok := e.corpus.titles[strings.ToLower(strings.TrimSpace(title))]
	if !ok {
		return env.Document{}, false, nil
	}
	return env.Document(e.corpus.document(i)), true, nil
}

// PageTokens returns the setting page_tokens.
func (e *Environment) PageTokens() int { return e.settings.Page }

// terms returns the words of a text in small letters.
func terms(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
}

// snippet returns the part of a document that shows most words of a query: the first sentence with most of them, and
// the sentences after it as far as they fit. A document that fits is shown as a whole.
func snippet(sentences, query []string, limit int) string {
	if whole := strings.Join(sentences, " "); len(whole) <= limit {
		return whole
	}
	best, most := 0, -1
	for i, s := range sentences {
		n, in := 0, terms(s)
		for _, q := range query {
			if slices.Contains(in, q) {
				n++
			}
		}
		if n > most {
			best, most = i, n
		}
	}
	out := short(sentences[best], limit)
	for _, s := range sentences[best+1:] {
		if len(out)+1+len(s) > limit {
			break
		}
		out += " " + s
	}
	return out
}

// short cuts a text to a number of bytes, at a space if there is one.
func short(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > 0 {
		end = space
	}
	return text[:end]
}
