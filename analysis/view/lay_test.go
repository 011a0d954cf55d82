package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/schema"
)

// What an environment showed is laid out as its declaration says.
func TestObservationsAreLaidOut(t *testing.T) {
	row := schema.TransitionRow{Action: "click[red]", WellFormed: true, Valid: true,
		Observation: "'Back to Search' [SEP] 'color' [SEP] 'red'"}
	shop, ok := environments.Named("webshop")
	require.True(t, ok)
	notes := environment(row, shop.Lay)
	require.Contains(t, notes, Note{"observation", "Back to Search\ncolor\nred"})
}
