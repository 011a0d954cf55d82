package schema

import (
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/stretchr/testify/require"
)

// TestIndicesAreTheLibrarys compares appendIndices with the library's encoding: every width, with long and short runs.
func TestIndicesAreTheLibrarys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	front := []byte("in front")
	for width := 0; width <= widestFast+2; width++ {
		for range 60 {
			var indices []int32
			for n := r.IntN(400); len(indices) < n; {
				v := r.Int32N(1 << width)
				for range 1 + r.IntN(2)*r.IntN(40) {
					indices = append(indices, v)
				}
			}
			want, err := new(rle.DictionaryEncoding).EncodeInt32(nil, indices)
			require.NoError(t, err)
			got, err := appendIndices(front[:len(front):len(front)], indices)
			require.NoError(t, err)
			require.Equal(t, append(front[:len(front):len(front)], want...), got, "width %d: %v", width, indices)
		}
	}
}
