package shop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A person reads one line for each text and for each product; other texts stay as they are.
func TestLines(t *testing.T) {
	for page, want := range map[string]string{
		"'Search'": "Search",
		"'Back to Search' [SEP] 'Page 1 (Total results: 2)' [SEP] 'b02k3m4q5x' [SEP] 'cotton jeans' [SEP] '$20.00' " +
			"[SEP] 'b09k3m4q5x' [SEP] 'cotton socks' [SEP] '$10.00'": "Back to Search\nPage 1 (Total results: 2)\n" +
			"b02k3m4q5x  cotton jeans  $20.00\nb09k3m4q5x  cotton socks  $10.00",
		"":             "",
		"'men's [SEP]": "men's [SEP]",
		"b02k3m4q5x":   "b02k3m4q5x",
	} {
		require.Equal(t, want, lines(page))
	}
}
