package cause_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/cause"
)

func TestOf(t *testing.T) {
	_, missing := os.ReadFile("nowhere")
	_, folder := os.ReadFile(".")
	renamed := os.Rename("nowhere", "elsewhere")
	asked := &url.Error{Op: "Get", URL: "http://h", Err: io.ErrUnexpectedEOF}
	for err, want := range map[error]string{
		missing: "no such file or directory", folder: "is a directory", renamed: "no such file or directory",
		asked: "unexpected EOF", io.EOF: "EOF",
	} {
		require.EqualError(t, cause.Of(err), want)
	}
	require.ErrorIs(t, cause.Of(missing), fs.ErrNotExist)
	require.ErrorIs(t, cause.Of(folder), syscall.EISDIR)
	around := fmt.Errorf("line 3: %w", missing)
	require.Equal(t, around, cause.Of(around), "what was said around it stays")
	require.NoError(t, cause.Of(nil))
}
