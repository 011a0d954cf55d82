package importing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

const conversation = `[{"messages": [{"role": "user", "content": "hello"}, ` +
	`{"role": "assistant", "content": "hi"}], "reward": 1}]`

// A file that is not in its format is refused with what it is, where that can be told.
func TestCheckFile(t *testing.T) {
	chat, err := FormatOf("openai")
	require.NoError(t, err)
	require.NoError(t, chat.CheckFile([]byte(conversation)))
	for data, want := range map[string]string{
		"\x1f\x8b\x08": "is compressed with gzip; unpack it first (gunzip)",
		"PK\x03\x04":   "is compressed with zip; unpack it first (unzip)",
		"PAR1....":     "is a table in Parquet or Arrow; write it as JSON lines",
		"":             "holds none",
	} {
		require.ErrorContains(t, chat.CheckFile([]byte(data)), want)
	}
}

func TestUnknownFormat(t *testing.T) {
	for name, want := range map[string]string{
		"opnai": `unknown format "opnai"; did you mean openai?`,
		"csv":   `unknown format "csv"; there are openai`,
	} {
		_, err := FormatOf(name)
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(badinput.Error))
	}
}
