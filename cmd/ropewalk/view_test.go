package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/store/mem"
)

// viewing runs `ropewalk view` until the test ends it.
type viewing struct {
	link string
	end  func() (code int, messages string)
}

func startView(t *testing.T, args ...string) viewing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out, messages transcript.Transcript
	code := make(chan int, 1)
	go func() { code <- Run(ctx, append([]string{"view"}, args...), &out, &messages) }()
	for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), "\n"); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "no link was printed: %s", messages.String())
		if len(code) > 0 {
			require.FailNow(t, "the command has ended", messages.String())
		}
	}
	return viewing{link: strings.TrimSpace(out.String()), end: func() (int, string) {
		cancel()
		return <-code, messages.String()
	}}
}

// page fetches what a link leads to.
func page(t *testing.T, link string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	answer, err := (&http.Client{Jar: jar}).Get(link)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

// The command prints a link that lets its reader in, also the next time, and ends quietly with Ctrl-C.
func TestView(t *testing.T) {
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Unpack(t, objects, filepath.Join(home, "s3", "ropewalk"))
	first := startView(t, "r", "--address", "127.0.0.1:0")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/r/\?token=[\w-]{32}$`, first.link)
	require.Contains(t, page(t, first.link), "<title>ropewalk view</title>")
	code, messages := first.end()
	require.Equal(t, exitDone, code)
	require.Equal(t, "Ctrl-C ends it\n", messages)

	again := startView(t, "r", "--address", "localhost:0")
	_, token, _ := strings.Cut(first.link, "token=")
	require.True(t, strings.HasSuffix(again.link, "token="+token), "links stay valid")
	again.end()
	all := startView(t, "--address", "127.0.0.1:0")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/\?token=`, all.link)
	require.Contains(t, page(t, all.link), `<a href="/r/">r</a>`)
	all.end()
	info, err := os.Stat(filepath.Join(home, "view-token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "no one else may read it")
}

// A record on an S3 server is viewed by its address.
func TestViewOfS3(t *testing.T) {
	server := storetest.Versitygw(t)
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	recordtest.Unpack(t, objects, filepath.Join(server.Folder, "elsewhere"))
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	t.Setenv("AWS_ENDPOINT_URL", server.Endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	v := startView(t, "s3://elsewhere/runs/run=r", "--address", "127.0.0.1:0")
	require.Contains(t, page(t, v.link), "<title>ropewalk view</title>")
	v.end()
}
