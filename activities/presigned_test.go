package activities_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/internal/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
	"github.com/ropewalk/ropewalk/workflows"
)

// signingKey returns a new signer and the keys that trust it.
func signingKey(t *testing.T) (*signing.Signer, signing.Keys) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	write := func(kind string, data []byte, err error) string {
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "key.pem")
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	data, err := x509.MarshalPKCS8PrivateKey(private)
	signer, err := signing.Load(write("PRIVATE KEY", data, err))
	require.NoError(t, err)
	data, err = x509.MarshalPKIXPublicKey(public)
	keys, err := signing.LoadKeys([]string{write("PUBLIC KEY", data, err)})
	require.NoError(t, err)
	return signer, keys
}

// A run whose worker of the queue sandbox has no credentials of the store ends with the weights of any other, every
// manifest is signed, and the presigner has refused nothing.
func TestAWorkerWithoutCredentials(t *testing.T) {
	// Enough cloning of the teacher that responses call the tool.
	set := append(slices.Clone(small), "rollout.mode=staged", "warm_start.steps=150", "policy.hidden=64")
	want, err := newBench(t, mem.New()).train(t, workflows.TrainRunInput{Run: "r", Recipe: "quickstart", Set: set})
	require.NoError(t, err)

	server := storetest.Versitygw(t)
	signer, keys := signingKey(t)
	objects, err := s3.New(s3.Options{Endpoint: server.Endpoint, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey, Signer: signer})
	require.NoError(t, err)
	require.NoError(t, objects.EnsureBucket(t.Context()))
	log := &transcript.Transcript{}
	presigner := httptest.NewServer(presigned.NewService(presigned.ServiceOptions{Store: objects,
		Clients: []presigned.Client{{Name: "node", Tokens: [][sha256.Size]byte{sha256.Sum256([]byte("token-4711"))}}},
		Policy:  grants.SandboxQueue(),
		Log:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}).Handler())
	t.Cleanup(presigner.Close)
	asking, err := presigned.Open(t.Context(), presigned.Options{Address: presigner.URL, Token: "token-4711",
		Store: s3.Options{Signer: signer}})
	require.NoError(t, err)
	require.NoError(t, store.Probe(t.Context(), asking))

	env := pipelinetest.SplitEnvironment(pipelinetest.Deps(t, objects, pipelinetest.Wrap{}),
		pipelinetest.Deps(t, asking, pipelinetest.Wrap{}))
	got, err := pipelinetest.Run[workflows.TrainRunResult](env, workflows.TrainRunName,
		workflows.TrainRunInput{Run: "r", Recipe: "quickstart", Set: set})
	require.NoError(t, err)
	require.Equal(t, want.Policy.Digest, got.Policy.Digest)
	require.Contains(t, log.String(), "operation=put_if_absent key=\""+schema.ManifestsPrefix("r")+"step=1/sandbox/")
	require.Contains(t, log.String(), "operation=put key=\"runs/run=r/signatures/manifests/step=1/sandbox/")
	require.NotContains(t, log.String(), "refused")
	found, err := analysis.New(objects).VerifySigned(t.Context(), "r", keys)
	require.NoError(t, err)
	require.Empty(t, found.Faults)
}
