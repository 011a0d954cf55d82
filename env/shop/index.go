package shop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/search"
)

const (
	// maxResults is the number of products that a search shows at most, as in WebShop.
	maxResults = 50
	// maxQuery bounds a query in bytes.
	maxQuery = 300
	// maxRemembered bounds the number of queries whose results an index remembers.
	maxRemembered = 4096
	// precision is the number of steps that a score of one is divided into. Scores in the same step are a tie.
	precision = 1e6
	// field is the only field of a document.
	field = "text"
)

// index finds products by words, with Bleve's English analysis and its tf-idf score. It is made at the first search.
//
// The order of results is the same on every machine. Bleve's scores can differ in their last bits between processors
// and, because it reads the documents of a batch side by side, between two indices of one catalogue. So scores are
// rounded, and equal ones are ordered by the product's number.
type index struct {
	products []*product
	once     sync.Once
	bleve    bleve.Index
	err      error

	mu         sync.Mutex
	remembered map[string][]int
}

func newIndex(products []*product) *index {
	return &index{products: products, remembered: map[string][]int{}}
}

// build indexes the texts of the products, in memory.
func (x *index) build() error {
	text := bleve.NewTextFieldMapping()
	text.Store, text.IncludeInAll, text.IncludeTermVectors, text.DocValues = false, false, false, false
	document := bleve.NewDocumentStaticMapping()
	document.AddFieldMappingsAt(field, text)
	m := bleve.NewIndexMapping()
	m.DefaultMapping, m.DefaultAnalyzer, m.DefaultField = document, en.AnalyzerName, field
	made, err := bleve.NewUsing("", m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return fmt.Errorf("make the shop's index: %w", err)
	}
	all := made.NewBatch()
	for _, p := range x.products {
		if err := all.Index(strconv.Itoa(p.number), map[string]any{field: p.indexed()}); err != nil {
			return fmt.Errorf("index product %s: %w", p.id, err)
		}
	}
	if err := made.Batch(all); err != nil {
		return fmt.Errorf("index the shop's %d products: %w", len(x.products), err)
	}
	x.bleve = made
	return nil
}

// search returns the numbers of the products that fit the query best. It is empty if no word is found.
func (x *index) search(query string) ([]int, error) {
	x.mu.Lock()
	found, known := x.remembered[query]
	x.mu.Unlock()
	if known {
		return found, nil
	}
	found, err := x.ranked(query)
	if err != nil {
		return nil, fmt.Errorf("search the shop for %q: %w", query, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.remembered) >= maxRemembered {
		clear(x.remembered)
	}
	x.remembered[query] = found
	return found, nil
}

// ranked asks for more hits than are shown until those left out score less than all that are shown.
func (x *index) ranked(query string) ([]int, error) {
	if x.once.Do(func() { x.err = x.build() }); x.err != nil {
		return nil, x.err
	}
	for n := 2 * maxResults; ; n *= 8 {
		request := bleve.NewSearchRequestOptions(bleve.NewMatchQuery(query), n, 0, false)
		result, err := x.bleve.Search(request)
		if err != nil {
			return nil, err
		}
		hits, err := ordered(result.Hits)
		if err != nil {
			return nil, err
		}
		whole := len(hits) < n
		if whole || hits[maxResults-1].score > hits[n-1].score {
			out := make([]int, 0, maxResults)
			for _, h := range hits[:min(maxResults, len(hits))] {
				out = append(out, h.product)
			}
			return out, nil
		}
	}
}

type hit struct {
	product int
	score   int64 // rounded
}

// ordered sorts hits by their rounded scores, then by the product's number.
func ordered(found search.DocumentMatchCollection) ([]hit, error) {
	hits := make([]hit, 0, len(found))
	for _, f := range found {
		n, err := strconv.Atoi(f.ID)
		if err != nil {
			return nil, err
		}
		hits = append(hits, hit{n, int64(math.Round(f.Score * precision))})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.product, b.product))
	})
	return hits, nil
}

// asQuery returns the text that is searched for: valid, in lower case, without extra spaces and not too long.
func asQuery(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(strings.ToValidUTF8(text, " "))), " ")
	if len(text) > maxQuery {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:maxQuery], ""))
	}
	return text
}
