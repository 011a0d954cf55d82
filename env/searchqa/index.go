package searchqa

import (
	"context"
	"fmt"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/search"
	blevequery "github.com/blevesearch/bleve/v2/search/query"
)

// index finds documents by the words of a query. It ranks them by BM25 over titles and texts, and equal scores by the
// documents' numbers, so that the same query has the same results in every process. It lives in memory as long as the
// process.
type index struct{ bleve bleve.Index }

// titleWeight is how much more a word counts in a title than in a text.
const titleWeight = 3

// scoring is Bleve's name of BM25.
const scoring = "bm25"

// indexDocument is what the index reads of a document.
type indexDocument struct{ Title, Text string }

// find returns the corpus's index. The first call makes it.
func (c *corpus) find() (*index, error) {
	c.indexed.Do(func() { c.index, c.broken = newIndex(c) })
	return c.index, c.broken
}

func newIndex(c *corpus) (*index, error) {
	m := bleve.NewIndexMapping()
	m.ScoringModel = scoring
	text := bleve.NewTextFieldMapping()
	text.Store, text.IncludeInAll, text.IncludeTermVectors, text.DocValues = false, false, false, false
	m.DefaultMapping.Dynamic = false
	m.DefaultMapping.AddFieldMappingsAt("Title", text)
	m.DefaultMapping.AddFieldMappingsAt("Text", text)
	x, err := bleve.NewUsing("", m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("make the index of %d documents: %w", len(c.entities), err)
	}
	batch := x.NewBatch()
	for i := range c.entities {
		d := c.document(i)
		if err := batch.Index(documentID(i), indexDocument(d)); err != nil {
			return nil, fmt.Errorf("index document %q: %w", d.Title, err)
		}
	}
	if err := x.Batch(batch); err != nil {
		return nil, fmt.Errorf("index %d documents: %w", len(c.entities), err)
	}
	return &index{x}, nil
}

// documentID is a document's number in the index, in the order of bytes.
func documentID(i int) string { return fmt.Sprintf("%06d", i) }

// search returns the numbers of the best documents. Any text is a query.
func (x *index) search(ctx context.Context, query string, most int) ([]int, error) {
	title, text := bleve.NewMatchQuery(query), bleve.NewMatchQuery(query)
	title.SetField("Title")
	title.SetBoost(titleWeight)
	text.SetField("Text")
	request := bleve.NewSearchRequestOptions(bleve.NewDisjunctionQuery([]blevequery.Query{title, text}...), most, 0,
		false)
	request.SortByCustom(search.SortOrder{&search.SortScore{Desc: true}, &search.SortDocID{}})
	found, err := x.bleve.SearchInContext(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	out := make([]int, len(found.Hits))
	for i, hit := range found.Hits {
		if out[i], err = strconv.Atoi(hit.ID); err != nil {
			return nil, fmt.Errorf("search: the index holds an unknown document: %w", err)
		}
	}
	return out, nil
}
