package s3_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// initials signs documents with their first letter.
type initials struct{}

func (initials) Sign(key string, data []byte) (string, []byte) {
	if key == "plain" {
		return "", nil
	}
	return "signatures/" + key, data[:1]
}

// What is put if absent is signed before it is put.
func TestSignedObjects(t *testing.T) {
	server := storetest.Versitygw(t)
	s, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: "signed", AccessKey: server.AccessKey,
		SecretKey: server.SecretKey, Signer: initials{}})
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, s.EnsureBucket(ctx))
	require.NoError(t, s.PutIfAbsent(ctx, "document", []byte("text")))
	got, err := s.Get(ctx, "signatures/document")
	require.NoError(t, err)
	require.Equal(t, "t", string(got))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "document", []byte("other")), store.ErrExists)
	require.NoError(t, s.PutIfAbsent(ctx, "plain", []byte("text")))
	require.NoError(t, s.Put(ctx, "shard", []byte("rows")))
	listed, err := s.List(ctx, "signatures/")
	require.NoError(t, err)
	require.Len(t, listed, 1)
}
