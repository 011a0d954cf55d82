package signing_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/schema"
)

// pair writes a new key and its public half.
func pair(t *testing.T) (private, public string) {
	t.Helper()
	open, secret, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	data, err := x509.MarshalPKCS8PrivateKey(secret)
	require.NoError(t, err)
	private = file(t, "PRIVATE KEY", data)
	data, err = x509.MarshalPKIXPublicKey(open)
	require.NoError(t, err)
	return private, file(t, "PUBLIC KEY", data)
}

func file(t *testing.T, kind string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
	return path
}

func TestSignaturesOfDocuments(t *testing.T) {
	private, public := pair(t)
	_, other := pair(t)
	s, err := signing.Load(private)
	require.NoError(t, err)
	document, data := schema.HeadKey("r", "3"), []byte("a head")
	at, signature := s.Sign(document, data)
	require.True(t, schema.IsSignature(at), at)
	again, same := s.Sign(document, data)
	require.Equal(t, at, again)
	require.Equal(t, signature, same, "an attempt that commits the same bytes puts the same signature")

	keys, err := signing.LoadKeys([]string{public, other})
	require.NoError(t, err)
	require.Len(t, keys, 2)
	digest := schema.Digest(data)
	trusted := keys.Places(document, digest)[at]
	require.NotNil(t, trusted)
	require.True(t, ed25519.Verify(trusted, schema.SignedText(document, digest), signature))
	require.False(t, ed25519.Verify(trusted, schema.SignedText(schema.HeadKey("r", "4"), digest), signature),
		"a signature holds for one place")
	unknown, err := signing.LoadKeys([]string{other})
	require.NoError(t, err)
	require.NotContains(t, unknown.Places(document, digest), at)

	at, signature = s.Sign("runs/run=r/table=turns/step=1/gen=0/00000-0123456789abcdef.parquet", data)
	require.Empty(t, at, "a shard is named by the digest in its manifest")
	require.Nil(t, signature)
}

func TestKeysThatCannotBe(t *testing.T) {
	private, public := pair(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	data, err := x509.MarshalPKCS8PrivateKey(curve)
	require.NoError(t, err)
	for path, want := range map[string]string{
		public:                          "is no private key in PKCS #8",
		file(t, "PRIVATE KEY", data):    "holds a key of another kind, want Ed25519",
		filepath.Join(t.TempDir(), "a"): "no such file",
	} {
		t.Setenv(signing.Variable, path)
		_, err := signing.FromEnv()
		require.ErrorContains(t, err, signing.Variable+": ")
		require.ErrorContains(t, err, want)
	}
	_, err = signing.LoadKeys([]string{private})
	require.ErrorContains(t, err, "is no public key")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("nothing"), 0o600))
	_, err = signing.LoadKeys([]string{empty})
	require.ErrorContains(t, err, "holds no PEM block")
	t.Setenv(signing.Variable, "")
	s, err := signing.FromEnv()
	require.NoError(t, err)
	require.Nil(t, s)
}
