package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// A model that belongs to no run is written with an output head of its own, in another number format.
func TestExportOfAModel(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "untied")
	servedModel(t, from)
	code, _, messages := command(t, "export", from, "--untied", "--dtype", "bf16", "-o", to)
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, messages, "written to "+to+": "+from)
	was, err := checkpoint.Open(from, false)
	require.NoError(t, err)
	defer was.Close()
	got, err := checkpoint.Open(to, false)
	require.NoError(t, err)
	defer got.Close()
	require.False(t, was.Shape.Untied)
	require.True(t, got.Shape.Untied)
	require.Equal(t, was.Shape.Params()+int64(was.Shape.Vocab*was.Shape.Hidden), got.Shape.Params())
	require.NotEmpty(t, got.Extra["tokenizer.json"])
	require.Equal(t, was.Extra["tokenizer.json"], got.Extra["tokenizer.json"])

	code, _, messages = command(t, "export", from, "--untied", "-o", to)
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, to)
	for want, args := range map[string][]string{
		"--checkpoint: " + from + " is a model and not a run": {from, "--checkpoint", "1", "-o", to},
		from + " is a model: name what to change":             {from, "-o", to},
		"-o: name a folder":                                   {from, "--untied"},
		"./nowhere":                                           {"./nowhere", "--untied", "-o", to + "2"},
	} {
		code, _, messages := command(t, append([]string{"export"}, args...)...)
		require.Equal(t, exitBadInput, code, want)
		require.Contains(t, messages, want)
	}
}
