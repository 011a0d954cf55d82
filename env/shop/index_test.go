package shop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

// The first results of some searches in the full-size shop. They are the same on every machine.
func TestResults(t *testing.T) {
	c := newShop(t, Settings{}).catalogue
	var b strings.Builder
	for _, query := range []string{"machine washable cotton t-shirt", "gluten free popcorn, vanilla", "cables",
		"i need a bluetooth speaker that is water resistant and has stereo sound", "qqq", "the and of"} {
		found, err := c.index.search(asQuery(query))
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %d results\n", query, len(found))
		for _, n := range found[:min(len(found), 5)] {
			p := c.products[n]
			fmt.Fprintf(&b, "  %s %s: %s\n", p.id, p.title(), strings.Join(p.attributes, ", "))
		}
	}
	golden.Check(t, "results.txt", b.String(), *update)
}

// A second index of the same products ranks in the same way, although Bleve reads the products side by side.
func TestTwoIndicesAgree(t *testing.T) {
	c := newShop(t, Settings{Products: 2000}).catalogue
	first, second := newIndex(c.products), newIndex(c.products)
	for _, f := range families {
		for _, k := range f.kinds {
			for _, query := range []string{k.name, k.name + " " + f.attributes[0], f.attributes[1] + " made"} {
				a, err := first.ranked(query)
				require.NoError(t, err)
				b, err := second.ranked(query)
				require.NoError(t, err)
				require.Equal(t, a, b, query)
				require.NotEmpty(t, a, query)
			}
		}
	}
}

// Of products that score the same, the one with the lower number comes first.
func TestTiesAreInTheOrderOfNumbers(t *testing.T) {
	var all []*product
	for i := range 130 {
		all = append(all, &product{number: i, brief: true, attributes: []string{"cotton"},
			kind: kind{"sofa", "seating"}})
	}
	found, err := newIndex(all).search("cotton sofa")
	require.NoError(t, err)
	require.Len(t, found, maxResults)
	for i, n := range found {
		require.Equal(t, i, n)
	}
}

// Search finds attributes and kinds. The values of options are not in the index.
func TestOptionsAreNotIndexed(t *testing.T) {
	c := newShop(t, Settings{}).catalogue
	for _, word := range []string{"burgundy", "turquoise", "xx-large", "sandalwood", "jumbo", "barbecue", "carton"} {
		found, err := c.index.search(word)
		require.NoError(t, err)
		require.Empty(t, found, word)
	}
	for _, word := range []string{"Sofas", "washable", "plated", "keto", "mattress"} {
		found, err := c.index.search(asQuery(word))
		require.NoError(t, err)
		require.Len(t, found, maxResults, word)
	}
}

func TestQueries(t *testing.T) {
	require.Equal(t, "red shoes", asQuery("  Red\n shoes "))
	require.Equal(t, "red", asQuery("red\xff"))
	require.LessOrEqual(t, len(asQuery(strings.Repeat("日本 ", 400))), maxQuery)
}

// Every product has an id of its own, and its texts follow from its number alone.
func TestTheCatalogue(t *testing.T) {
	s := Settings{Products: fullSize}.shape()
	a, b := s.make(), s.make()
	require.Len(t, a.byID, fullSize)
	require.Equal(t, a.products, b.products)
	kinds, noReviews := map[string]bool{}, 0
	for _, p := range a.products {
		kinds[p.kind.name] = true
		require.GreaterOrEqual(t, len(p.attributes), 3)
		require.NotEmpty(t, p.options)
		require.Len(t, p.id, 10)
		if len(p.reviews()) == 0 {
			noReviews++
		}
	}
	require.Len(t, kinds, 63)
	require.InDelta(t, fullSize/3, noReviews, 200)
}
