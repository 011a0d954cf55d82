package curation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Both bounds are kept; without an upper one every solved task is.
func TestDifficulty(t *testing.T) {
	for _, c := range []struct {
		of      Difficulty
		matched int
		want    string
	}{
		{Difficulty{AtLeast: 2}, 0, tooHard}, {Difficulty{AtLeast: 2}, 1, tooHard}, {Difficulty{AtLeast: 2}, 2, ""},
		{Difficulty{AtLeast: 2}, 16, ""}, {Difficulty{AtLeast: 2, AtMost: 12}, 12, ""},
		{Difficulty{AtLeast: 2, AtMost: 12}, 13, tooEasy}, {Difficulty{AtMost: 1}, 0, ""},
		{Difficulty{AtLeast: 3, AtMost: 3}, 3, ""},
	} {
		require.Equal(t, c.want, c.of.Judge(16, c.matched).Reason, "%+v", c)
	}
	require.Equal(t, "1 of 16 answers", Difficulty{AtLeast: 2}.Judge(16, 1).Detail)
}
