package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged returns what a call writes to a log.
func logged(t *testing.T, o Options, call func(*slog.Logger)) string {
	t.Helper()
	var out bytes.Buffer
	h, err := New(&out, o)
	require.NoError(t, err)
	call(slog.New(h))
	return out.String()
}

func TestLinesCarryTheirContext(t *testing.T) {
	outer := With(t.Context(), slog.String("run", "r"), slog.Int("step", 3), slog.String("stage", "rollout"))
	inner := With(outer, slog.String("stage", "sandbox"), slog.Int("shard", 2))
	text := logged(t, Options{Format: "json"}, func(l *slog.Logger) { l.With("a", 1).WarnContext(inner, "m", "b", 2) })
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &line))
	delete(line, "time")
	require.Equal(t, map[string]any{"level": "WARN", "msg": "m", "a": 1.0, "b": 2.0, "run": "r", "step": 3.0,
		"stage": "sandbox", "shard": 2.0}, line)
	require.Contains(t, logged(t, Options{}, func(l *slog.Logger) { l.InfoContext(outer, "m") }), "stage=rollout")
	require.Empty(t, logged(t, Options{Level: slog.LevelWarn}, func(l *slog.Logger) { l.InfoContext(outer, "m") }))
}

// secretive is a value whose fields hold a secret.
type secretive struct{ Key string }

func TestSecretsAreConcealed(t *testing.T) {
	const key, token = "wJalrXUtnFEMI/K7MDENG", "hunter2hunter2"
	t.Setenv("AWS_SECRET_ACCESS_KEY", key)
	for _, format := range formats {
		text := logged(t, Options{Format: format, Secrets: []string{token, "abc"}}, func(l *slog.Logger) {
			l.Error("bad "+key, "error", fmt.Errorf("get http://u:pw@host/x: %w", errors.New(key)))
			l.With("with", token).Error("abc", "any", secretive{token}, "list", []string{key}, "grouped",
				slog.GroupValue(slog.String("inner", token)))
			l.WithGroup("g").Error("m", "token", []byte(token), "url", "https://user@host/path")
		})
		require.NotContains(t, text, key)
		require.NotContains(t, text, token)
		require.NotContains(t, text, "u:pw")
		require.NotContains(t, text, "user@")
		require.Contains(t, text, "abc", "too short to tell from other text")
		require.Contains(t, text, "host/x")
		require.Contains(t, text, "[secret]")
	}
}

func TestMessagesAreConcealed(t *testing.T) {
	t.Setenv("TEMPORAL_API_KEY", "key-of-temporal")
	var out bytes.Buffer
	n, err := fmt.Fprintln(Concealing(&out), "ask https://me:pw@host:1/x with key-of-temporal")
	require.NoError(t, err)
	require.Equal(t, 48, n, "the bytes that were given")
	require.Equal(t, "ask https://[secret]@host:1/x with [secret]\n", out.String())
	require.Equal(t, "ropewalk@0.1 and a@b", Conceal("ropewalk@0.1 and a@b"))
	require.Equal(t, "get https://cdn/x?X-Amz-Credential=[secret]&X-Amz-Expires=9&X-Amz-Signature=[secret] 403",
		Conceal("get https://cdn/x?X-Amz-Credential=me%2Fs3&X-Amz-Expires=9&X-Amz-Signature=4711 403"))
}

func TestFormatOfALog(t *testing.T) {
	_, err := New(&bytes.Buffer{}, Options{Format: "xml"})
	require.EqualError(t, err, `log format "xml": want text or json`)
}
