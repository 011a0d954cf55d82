package service

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// get sends a request on a new connection.
func get(client *http.Client, url string) (code int, text string, err error) {
	answer, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// Connections beyond the limit are refused in both protocols. There is room again when others close.
func TestConnectionsAreBounded(t *testing.T) {
	server, trusting := certificate(t)
	for _, tt := range []struct {
		name, scheme    string
		server, trusted *tls.Config
		dial            grpc.DialOption
	}{
		{"plain", "http://", nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials())},
		{"TLS", "https://", server, trusting, grpc.WithTransportCredentials(credentials.NewTLS(trusting))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			address := listener.Addr().String()
			s := newService(t, Options{Executor: &fake{}, MostConnections: 3})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, listener, tt.server, hangs) }()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: tt.trusted, DisableKeepAlives: true}}

			var idle []net.Conn
			for range 3 {
				conn, err := net.Dial("tcp", address)
				require.NoError(t, err)
				idle = append(idle, conn)
			}
			require.Eventually(t, func() bool { return s.connections.count() == 3 }, hangs, time.Millisecond)
			code, text, err := get(client, tt.scheme+address+"/healthz")
			require.NoError(t, err)
			requireError(t, code, text, 503, "too_many_connections", "", "limit of 3 connections")
			conn, err := grpc.NewClient(address, tt.dial)
			require.NoError(t, err)
			stream, err := rpc.NewSandboxClient(conn).Run(t.Context())
			if err == nil {
				_, err = stream.Recv()
			}
			require.ErrorContains(t, err, "limit of 3 connections")
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.NoError(t, conn.Close())

			for range 5 { // refused connections use no room
				require.NoError(t, idle[0].Close())
				require.Eventually(t, func() bool { return s.connections.count() < 3 }, hangs, time.Millisecond)
				code, text, err = get(client, tt.scheme+address+"/healthz")
				require.NoError(t, err)
				require.Equal(t, 200, code, text)
				require.Eventually(t, func() bool { return s.connections.count() == 2 }, hangs,
					time.Millisecond)
				idle[0], err = net.Dial("tcp", address)
				require.NoError(t, err)
				require.Eventually(t, func() bool { return s.connections.count() == 3 }, hangs,
					time.Millisecond)
			}
			for _, c := range idle {
				require.NoError(t, c.Close())
			}
			conn, err = grpc.NewClient(address, tt.dial)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				stream, err := rpc.NewSandboxClient(conn).Run(t.Context())
				if err == nil {
					_, err = stream.Recv()
				}
				return err == nil
			}, hangs, 50*time.Millisecond)
			require.NoError(t, conn.Close())
			cancel()
			require.NoError(t, <-done)
			require.Eventually(t, func() bool { return s.connections.count() == 0 }, hangs, time.Millisecond)
		})
	}
}

// A flood of connections does not get answers without limit.
func TestAFloodOfConnectionsIsCutOff(t *testing.T) {
	c := newConnections(1)
	var theirs []net.Conn
	for i := range mostRefusing + 10 {
		ours, their := net.Pipe()
		theirs = append(theirs, their)
		if i == 0 {
			_, room := c.admit(ours)
			require.True(t, room)
			continue
		}
		_, room := c.admit(ours)
		require.False(t, room)
		c.refuse(ours)
	}
	_, err := theirs[len(theirs)-1].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "closed at once")
	require.Len(t, c.refusing, mostRefusing)
	for _, conn := range theirs {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool { return len(c.refusing) == 0 }, hangs, time.Millisecond)
}
