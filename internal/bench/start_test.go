package bench

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStart(t *testing.T) {
	ready := regexp.MustCompile(`listening on (\S+)`)
	p := Program{Path: "sh"}
	s, found, err := p.Start(t.Context(), ready, "-c", "trap 'exit 0' INT; echo first; echo listening on a:1; "+
		"while :; do sleep 0.01; done")
	require.NoError(t, err)
	require.Equal(t, "a:1", found)
	require.NoError(t, s.Stop())

	_, _, err = p.Start(t.Context(), ready, "-c", "echo no port is free >&2; exit 3")
	require.EqualError(t, err, "sh -c echo no port is free >&2; exit 3 ended before it was ready: no port is free")

	s, _, err = p.Start(t.Context(), nil, "-c", "exit 4")
	require.NoError(t, err)
	require.ErrorContains(t, s.Stop(), "sh -c exit 4: ")
}
