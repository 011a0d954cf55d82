package badinput_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// A value of the wrong kind is said in the words of JSON, and other errors stay.
func TestJSON(t *testing.T) {
	var into struct {
		Names  []string
		Of     map[string]int
		Share  float64
		Within struct{ Set bool }
	}
	for text, want := range map[string]string{
		`[]`:                     "must be an object, got a list",
		`{"Names": {}}`:          "Names: must be a list, got an object",
		`{"Names": [true]}`:      "Names: must be a text, got true or false",
		`{"Of": "x"}`:            "Of: must be an object, got a text",
		`{"Of": {"a": 1.5}}`:     "Of: must be a whole number, got 1.5",
		`{"Share": "1"}`:         "Share: must be a number, got a text",
		`{"Within": {"Set": 1}}`: "Within.Set: must be true or false, got a number",
		`{`:                      "unexpected end of JSON input",
	} {
		require.EqualError(t, badinput.JSON(json.Unmarshal([]byte(text), &into)), want, text)
	}
	require.NoError(t, badinput.JSON(nil))
}

func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into plan.File": "line 1: must be a mapping, " +
			"got a list",
		"line 2: cannot unmarshal !!str `many` into *int": "line 2: must be a whole number, got many",
		"line 3: cannot unmarshal !!int `3` into []plan.Device\n  line 4: cannot unmarshal !!str `x` into " +
			"time.Duration": "line 3: must be a list, got 3; line 4: must be a duration such as 10s, got x",
		"line 5: field colour not found in type plan.declaredFile": "line 5: field colour not found",
		"yaml: line 6: did not find expected ',' or ']'":           "line 6: did not find expected ',' or ']'",
	} {
		require.Equal(t, want, badinput.YAML(text))
	}
}

func TestErrorsAreMarkedAndWrapped(t *testing.T) {
	err := fmt.Errorf("run: %w", badinput.Errorf("--seed: %w", io.EOF))
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, bad, "--seed: EOF")
	require.ErrorIs(t, err, io.EOF)
	require.ErrorAs(t, badinput.Of(io.EOF), &bad)
	require.False(t, errors.As(io.EOF, &bad))
}
