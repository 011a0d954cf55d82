package evaluation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/schema"
)

func TestWords(t *testing.T) {
	exact, f1 := evaluation.Words([]schema.EvaluationRow{
		{Gold: "Velm | River Velm", FinalAnswer: "the river velm"},
		{Gold: "Velm | River Velm", FinalAnswer: "River Ae"}, // one of two words
		{Gold: "Velm"},
		{Gold: "Velm", FinalAnswer: "Velm", Greedy: true},
		{Gold: "Velm", FinalAnswer: "Velm"},
	})
	require.InDelta(t, 2.0/4, exact, 1e-12)
	require.InDelta(t, 2.5/4, f1, 1e-12)
	exact, f1 = evaluation.Words(nil)
	require.Zero(t, exact+f1)
}
