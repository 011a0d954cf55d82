package download_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/download"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestObjects(t *testing.T) {
	objects := mem.New()
	large := bytes.Repeat([]byte("0123456789"), 1<<20) // of two pieces
	require.NoError(t, objects.Put(t.Context(), "a/large", large))
	require.NoError(t, objects.Put(t.Context(), "a/whole", large[:8<<20])) // of exactly one
	require.NoError(t, objects.Put(t.Context(), "empty", nil))
	o := download.Opener{Bucket: func(name string) (store.Store, error) {
		if name != "data" {
			return nil, errors.New("no such bucket: " + name)
		}
		return objects, nil
	}}
	for key, want := range map[string][]byte{"a/large": large, "a/whole": large[:8<<20], "empty": {}} {
		r, err := o.Open(t.Context(), "s3://data/"+key)
		require.NoError(t, err, key)
		got, err := io.ReadAll(r)
		require.NoError(t, err, key)
		require.True(t, bytes.Equal(want, got), key)
		require.NoError(t, r.Close())
	}
	r, err := o.Open(t.Context(), "s3://data/a/")
	require.NoError(t, err)
	names, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "large\nwhole\n", string(names))
	_, err = o.Open(t.Context(), "s3://data/none")
	require.ErrorIs(t, err, store.ErrNotFound)
	for address, want := range map[string]string{
		"s3://other/f": "no such bucket: other", "s3://data": "the address is not s3://BUCKET/KEY",
		"s3:///f": "the address is not s3://BUCKET/KEY", "ftp://host/f": "neither s3:// nor https://",
	} {
		_, err := o.Open(t.Context(), address)
		require.ErrorContains(t, err, want, address)
	}
}

func TestPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/f":
			_, _ = io.WriteString(w, "text")
		case "/cut":
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "text")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	var o download.Opener
	r, err := o.Open(t.Context(), server.URL+"/f")
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.NoError(t, r.Close())

	r, err = o.Open(t.Context(), server.URL+"/cut")
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, r.Close())

	_, err = o.Open(t.Context(), server.URL+"/none")
	require.EqualError(t, err, "the server answers 404 Not Found")
	_, err = o.Open(t.Context(), "http://[::1")
	require.ErrorContains(t, err, "the address is not that of a file")
}
