package runs

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestDeedsAreKeptInTheirOrder(t *testing.T) {
	t.Setenv(ActorVariable, "ada")
	session := &Session{Store: mem.New()}
	require.NoError(t, session.Note(t.Context(), "r", "start", map[string]string{"recipe": "quickstart"}))
	t.Setenv(ActorVariable, "grace")
	require.NoError(t, session.Note(t.Context(), "r", "pause"))
	require.NoError(t, session.Note(t.Context(), "other", "stop"))
	require.NoError(t, session.Note(t.Context(), "r", "set", strings.Repeat("ä", longestDetail)))
	deeds, err := analysis.New(session.Store).Deeds(t.Context(), "r")
	require.NoError(t, err)
	require.Len(t, deeds, 3)
	for i, want := range []schema.Deed{{Action: "start", Actor: "ada", Detail: `{"recipe":"quickstart"}`},
		{Action: "pause", Actor: "grace"}, {Action: "set", Actor: "grace", Detail: deeds[2].Detail}} {
		want.At, want.Host = deeds[i].At, deeds[i].Host
		require.Equal(t, want, deeds[i])
	}
	require.LessOrEqual(t, len(deeds[2].Detail), longestDetail)
	require.Less(t, deeds[0].At, deeds[1].At)
}

// refusing is a store that takes nothing.
type refusing struct{ store.Store }

func (refusing) PutIfAbsent(context.Context, string, []byte) error { return errors.New("not allowed") }

func TestWhatCannotBeNotedIsNotDone(t *testing.T) {
	session := &Session{Store: refusing{mem.New()}}
	err := session.Note(t.Context(), "r", "stop")
	require.EqualError(t, err, "note who asks for stop of run r: not allowed")
	err = session.Note(t.Context(), schema.NoRun, "gc")
	require.EqualError(t, err, "note who asks for gc: not allowed")
	require.Error(t, schema.CheckRunID(schema.NoRun))
}

func TestTheActorIsNamedByItsCertificate(t *testing.T) {
	t.Setenv(ActorVariable, "")
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "team-a"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "client.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	t.Setenv(certificateVariable, path)
	require.Equal(t, "team-a", Actor())
	require.NoError(t, os.WriteFile(path, []byte("no certificate"), 0o600))
	require.NotEqual(t, "team-a", Actor())
	require.NotEmpty(t, Actor(), "the system's user")
}
