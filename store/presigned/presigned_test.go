package presigned_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
)

const token = "token-of-node-1-4711"

// everything permits all operations.
func everything() presigned.Policy {
	return presigned.Policy{{Operations: []s3.Operation{s3.OpGet, s3.OpHead, s3.OpPut, s3.OpPutIfAbsent, s3.OpDelete,
		s3.OpList, s3.OpBeginUpload, s3.OpPutPart, s3.OpListParts, s3.OpCompleteUpload, s3.OpAbortUpload,
		s3.OpListUploads}, Match: func(string) bool { return true }}}
}

// setup is a presigner in front of a bucket of a real server.
type setup struct {
	owner   *s3.Store // has the credentials
	address string
	log     *transcript.Transcript // of the presigner
}

func start(t *testing.T, server storetest.Server, bucket string, policy presigned.Policy, life time.Duration) setup {
	t.Helper()
	owner, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	require.NoError(t, owner.EnsureBucket(t.Context()))
	out := setup{owner: owner, log: &transcript.Transcript{}}
	service := presigned.NewService(presigned.ServiceOptions{Store: owner, Policy: policy, Life: life,
		Clients: []presigned.Client{{Name: "node-0", Token: "another-token"}, {Name: "node-1", Token: token}},
		Log:     slog.New(slog.NewTextHandler(out.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	listening := httptest.NewServer(service.Handler())
	t.Cleanup(listening.Close)
	out.address = listening.URL
	return out
}

// open returns the store of a client.
func (s setup) open(t *testing.T, transport http.RoundTripper) *s3.Store {
	t.Helper()
	objects, err := presigned.Open(t.Context(), presigned.Options{Address: s.address, Token: token,
		Store: s3.Options{PartSize: 5 << 20, Transport: transport}})
	require.NoError(t, err)
	return objects
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	var buckets atomic.Int32
	storetest.Run(t, func(t *testing.T) store.Store {
		return start(t, server, fmt.Sprintf("presigned-%d", buckets.Add(1)), everything(), 0).open(t, nil)
	})
}
