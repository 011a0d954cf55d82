package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

// The clients follow the file, when it changes and on a signal. A bad file is refused, and the clients stay.
func TestSandboxServeFollowsTheFileOfClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	const one, other = "first-token-of-the-test", "other-token-of-the-test"
	write("clients:\n- {name: rl, tokens: [" + one + "]}\n")
	file, err := sandboxServeOptions{listening: listening{tokenFile: path}}.clients()
	require.NoError(t, err)
	require.Equal(t, []string{one}, file.secrets())

	for name, every := range map[string]time.Duration{"a change": time.Millisecond, "a signal": time.Hour} {
		t.Run(name, func(t *testing.T) {
			write("clients:\n- {name: rl, tokens: [" + one + "]}\n")
			file, err := sandboxServeOptions{listening: listening{tokenFile: path}}.clients()
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			log := &transcript.Transcript{}
			hangUp, set, done := make(chan os.Signal), make(chan []service.Client, 1), make(chan struct{})
			go func() {
				defer close(done)
				file.watch(ctx, hangUp, every, slog.New(slog.NewTextHandler(log, nil)),
					func(c []service.Client) { set <- c })
			}()
			notify := func() {
				if every == time.Hour {
					hangUp <- syscall.SIGHUP
				}
			}
			write("clients:\n- {name: rl, tokens: [" + one + ", " + other + "]}\n- {name: rl, tokens: []}\n")
			notify()
			require.Eventually(t, func() bool {
				return strings.Contains(log.String(),
					`clients.yaml:3: clients[1].name: \"rl\" is the name of another client`)
			}, 30*time.Second, time.Millisecond)
			require.Empty(t, set)
			write("clients:\n- {name: rl, tokens: [" + other + "]}\n")
			notify()
			got := <-set
			require.Equal(t, []service.Client{{Name: "rl", Tokens: []service.Token{service.TokenOf(other)}}}, got)
			require.NoError(t, os.Remove(path))
			notify()
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "no such file") }, 30*time.Second,
				time.Millisecond)
			stop()
			<-done
			require.Empty(t, set)
			require.NotContains(t, log.String(), "token-of-the-test")
		})
	}
}
