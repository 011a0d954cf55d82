package service

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// certificate returns a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots}
}

// TestBothProtocolsOverTLS checks that on one port a client that could use HTTP/2 gets HTTP/1.1, and gRPC gets its
// stream.
func TestBothProtocolsOverTLS(t *testing.T) {
	secure, trusting := certificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := newService(t, Options{Executor: &fake{}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, secure, time.Second) }()

	h := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}}
	answer, err := h.Post("https://"+listener.Addr().String()+"/v1/run", "application/json",
		strings.NewReader(`{"code":"ok","stdin":"x"}`))
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 200, answer.StatusCode)
	require.Contains(t, string(text), `"stdout":"x"`)
	h.CloseIdleConnections()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(trusting)))
	require.NoError(t, err)
	stream, err := rpc.NewSandboxClient(conn).Run(t.Context())
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, uint32(rpc.Version), first.GetNode().GetVersion())
	require.NoError(t, stream.Send(&rpc.RunRequest{Tasks: []*rpc.Task{{Key: "k",
		Call: rpc.FromCall(sandbox.Call{Code: "ok", Stdin: "y", Trace: "t"})}, {Key: "", Call: &rpc.Call{}}}}))
	require.NoError(t, stream.CloseSend())
	got := map[string]*rpc.Answer{}
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		for _, a := range in.GetAnswers() {
			got[a.GetKey()] = a
		}
	}
	require.Equal(t, "y", string(got["k"].GetResult().GetStdout()),
		"the client closed its half and still got its answers")
	require.Equal(t, "t", got["k"].GetTrace())
	require.Equal(t, rpc.KindBadCall, got[""].GetFailure().GetKind())
	require.NoError(t, conn.Close())
	cancel()
	require.NoError(t, <-done)
}

func TestTooManyTasks(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := newService(t, Options{Executor: &fake{}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	secure, trusting := certificate(t)
	go func() { done <- s.Serve(ctx, listener, secure, time.Second) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(trusting)))
	require.NoError(t, err)
	defer conn.Close()
	stream, err := rpc.NewSandboxClient(conn).Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&rpc.RunRequest{Tasks: make([]*rpc.Task, rpc.MostTasks+1)}))
	for err == nil {
		_, err = stream.Recv()
	}
	require.ErrorContains(t, err, "tasks: there are 65")
	cancel()
	require.NoError(t, <-done)
}
