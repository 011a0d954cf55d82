package shop

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/realdata"
)

// The goals that people wrote for WebShop are read whole, and each can be searched for. Most name a product or an
// attribute that this shop has.
func TestRealInstructions(t *testing.T) {
	f, err := os.Open(realdata.Path(t, "webshop", "human_goals.json"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	all, err := ReadInstructions(f)
	require.NoError(t, err)
	require.Len(t, all, 12087)
	require.Equal(t, "i need a long clip-in hair extension which is natural looking", all[0])
	c := newShop(t, Settings{Products: 1000}).catalogue
	found, searched := 0, 0
	for i := 0; i < len(all); i += 40 {
		products, err := c.index.search(asQuery(all[i]))
		require.NoError(t, err)
		if searched++; len(products) > 0 {
			found++
		}
	}
	t.Logf("%d of %d instructions find products", found, searched)
	require.Greater(t, found, searched/2)
}

func TestFaultyInstructionsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "want a JSON list of texts", "[]": "the list is empty", `{"a": 1}`: "want a JSON list of texts",
		`["red shoes", " "]`: "entry 1 has no text", `["red", 1]`: "want a JSON list of texts",
		"[\"\xff\"]": "is not UTF-8",
	} {
		_, err := ReadInstructions(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
	got, err := ReadInstructions(strings.NewReader(`[" red shoes ", "sofa"]`))
	require.NoError(t, err)
	require.Equal(t, []string{"red shoes", "sofa"}, got)
}
