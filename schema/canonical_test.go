package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeepDocumentsAreRefused(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + `"[[\"["` + strings.Repeat("]", n)) }
	_, err := recode(nested(9000))
	require.ErrorContains(t, err, "nested more than 200 deep")
	_, err = recode(nested(mostNesting))
	require.NoError(t, err)
}
