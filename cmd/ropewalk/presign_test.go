package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
)

// inFile writes a text to a new file.
func inFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPresignRefuses(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	token := inFile(t, "secret-4711\n")
	for _, c := range []struct {
		args      []string
		complaint string
	}{
		{nil, "name the clients' tokens with --token-file"},
		{[]string{"--token-file", "/no/such/file"}, "--token-file"},
		{[]string{"--token-file", inFile(t, " \n")}, "is empty"},
		{[]string{"--token-file", inFile(t, "clients:\n- {name: a}\n")}, "clients[0].tokens: the client has no token"},
		{[]string{"--token-file", inFile(t, "clients:\n- {name: a, tokens: [secret-4711-4711-4711], calls: 2}\n")},
			"client a: a presigner has no quotas"},
		{[]string{"--token-file", token, "--listen", "0.0.0.0:0"}, "name a certificate with --tls-cert and --tls-key"},
		{[]string{"--token-file", token, "--tls-cert", "c.pem"}, "belong together"},
		{[]string{"--token-file", token}, "environment variable AWS_ACCESS_KEY_ID is not set"},
	} {
		code, _, messages := command(t, append([]string{"presign"}, c.args...)...)
		require.Equal(t, exitBadInput, code, c.args)
		require.Contains(t, messages, c.complaint)
		require.NotContains(t, messages, "secret-4711")
	}
}

var metricsLine = regexp.MustCompile(`metrics at (http://\S+)\n`)

// certificate makes a certificate of 127.0.0.1 that vouches for itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	made, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return inFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))),
		inFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})))
}

// A worker of the queue sandbox opens the store of a presigner with a certificate, without any credentials. The
// presigner counts what it answers.
func TestPresign(t *testing.T) {
	server := storetest.Versitygw(t)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_S3": server.Endpoint,
		"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey,
		"ROPEWALK_S3_BUCKET": "presign"} {
		t.Setenv(name, value)
	}
	options, err := s3.FromEnv()
	require.NoError(t, err)
	owner, err := s3.New(options)
	require.NoError(t, err)
	require.NoError(t, owner.EnsureBucket(t.Context()))
	cert, key := certificate(t)
	clients := inFile(t, "clients:\n- {name: node-1, tokens: [token-of-node-1-4711]}\n"+
		"- {name: node-2, tokens: [token-of-node-2-4711]}\n")
	ctx, stop := context.WithCancel(t.Context())
	var out, messages transcript.Transcript
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, []string{"presign", "--listen", "127.0.0.1:0", "--token-file",
			clients, "--tls-cert", cert, "--tls-key", key, "--metrics-address", "127.0.0.1:0"}, &out, &messages)
	}()
	said := regexp.MustCompile(`listening on (https://\S+): URLs for s3://presign at \S+ are valid for 1m0s; ` +
		`clients: node-1, node-2\n`)
	require.Eventually(t, func() bool { return said.MatchString(out.String()) || len(done) > 0 }, time.Minute,
		10*time.Millisecond)
	require.True(t, said.MatchString(out.String()), messages.String())

	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"ROPEWALK_S3_BUCKET"} {
		t.Setenv(name, "")
	}
	o := workerOptions{queues: []string{"sandbox"}, presigner: said.FindStringSubmatch(out.String())[1]}
	t.Setenv(presignerToken, "token-of-node-2-4711")
	require.NoError(t, o.checkPresigner())
	_, err = o.openStore(t.Context(), nil)
	require.ErrorIs(t, err, store.ErrUnreachable, "the system's authorities do not vouch for it")
	require.ErrorContains(t, err, "certificate")
	t.Setenv(presignerAuthority, cert)
	objects, err := o.openStore(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, store.Probe(t.Context(), objects))
	_, err = objects.Get(t.Context(), "requests/a.json")
	require.ErrorIs(t, err, store.ErrCredentials)
	require.ErrorContains(t, err, "client node-2 may not get requests/a.json")
	_, err = o.openBucket("another")
	require.ErrorContains(t, err, "s3://another: credentials refused: this worker has none")

	at := metricsLine.FindStringSubmatch(messages.String())
	require.NotNil(t, at, messages.String())
	r, err := http.Get(at[1])
	require.NoError(t, err)
	counted, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	for _, want := range []string{
		`ropewalk_process_info\{kind="presigner",`,
		`ropewalk_presign_requests_total\{operation="get",outcome="forbidden"\} 1\n`,
		`ropewalk_presign_requests_total\{operation="put_if_absent",outcome="signed"\} [1-9]`,
		`ropewalk_presign_requests_total\{operation="delete",outcome="signed"\} [1-9]`,
		`ropewalk_presign_requests_total\{operation="unknown",outcome="unauthorized"\} 0\n`,
		`ropewalk_store_requests_total\{operation="put_if_absent",status="412"\} [1-9]`, // its own test of the store
	} {
		require.Regexp(t, want, string(counted))
	}
	require.NotContains(t, string(counted), "-4711")

	stop()
	require.Equal(t, exitDone, <-done, messages.String())
	require.Contains(t, messages.String(), "client node-2 may not get requests/a.json")
	require.NotContains(t, out.String()+messages.String(), "-4711")
	require.NotContains(t, messages.String(), "X-Amz")
}
