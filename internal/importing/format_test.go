package importing

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

const conversation = `[{"messages": [{"role": "user", "content": "hello"}, ` +
	`{"role": "assistant", "content": "hi"}], "reward": 1}]`

// Files of JSON are taken as they are, and the rows of other files as JSON lines. A file that is not in its format is
// refused with what it is, where that can be told.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	read := func(name, text string) (string, error) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		data, err := Read(t.Context(), path, nil)
		return string(data), err
	}
	got, err := read("a.json", conversation)
	require.NoError(t, err)
	require.Equal(t, conversation, got)
	got, err = read("a.csv", "prompt,chosen,rejected\n1+1?,2,3\n")
	require.NoError(t, err)
	require.Equal(t, `{"chosen":"2","prompt":"1+1?","rejected":"3"}`+"\n", got)
	var table bytes.Buffer
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	require.NoError(t, parquet.Write(&table, []struct {
		Prompt   string    `parquet:"prompt"`
		Chosen   []message `parquet:"chosen,list"`
		Rejected []message `parquet:"rejected,list"`
	}{{"1+1?", []message{{"assistant", "2"}}, []message{{"assistant", "3"}}}}))
	got, err = read("a.parquet", table.String())
	require.NoError(t, err)
	require.JSONEq(t, `{"prompt": "1+1?", "chosen": [{"role": "assistant", "content": "2"}], "rejected": [`+
		`{"role": "assistant", "content": "3"}]}`, got)
	for data, want := range map[string]string{
		"PK\x03\x04":                           "a: is compressed with zip; unpack it first (unzip)",
		"PAR1....":                             "a: after row 0: ",
		"":                                     "a: holds no rows",
		"hello":                                "a:1: is not a JSON object",
		`{"chosen": "2", "rejected": "3"}`:     "a: read conversations: line 1: item 0: prompt: is missing",
		"[" + `{"chosen": 1, "rejected": ""}]`: "chosen: must be text or a list of messages, got 1",
	} {
		_, err := read("a", data)
		require.ErrorContains(t, err, want)
	}
	_, err = Read(t.Context(), filepath.Join(folder, "none"), nil)
	require.ErrorContains(t, err, "no such file")
}

func TestUnknownFormat(t *testing.T) {
	for name, want := range map[string]string{
		"opnai": `unknown format "opnai"; did you mean openai?`,
		"csv":   `unknown format "csv"; there are openai`,
	} {
		err := CheckFormat(name)
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(badinput.Error))
	}
	require.NoError(t, CheckFormat("openai"))
}
