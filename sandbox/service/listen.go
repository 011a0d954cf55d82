package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// preface is the beginning of every HTTP/2 connection, which no HTTP/1.1 connection has. It tells streams from other
// requests.
var preface = []byte("PRI ")

// Serve answers both protocols on one listener until ctx ends. Then it drains for at most grace and returns. If
// secure has a certificate, both protocols use TLS.
func (s *Service) Serve(ctx context.Context, listener net.Listener, secure *tls.Config, grace time.Duration) error {
	if secure != nil {
		secure = secure.Clone()
		// Clients that can use HTTP/1.1 shall use it: HTTP/2 is for the stream.
		secure.NextProtos = []string{"http/1.1", "h2"}
		listener = tls.NewListener(listener, secure)
	}
	stream, plain := newBranch(listener.Addr()), newBranch(listener.Addr())
	// Idle connections are closed, so that others can connect.
	handler, alone := s.Handler(), onLoopback(listener.Addr())
	if alone {
		handler = local(handler)
	}
	grpcServer, httpServer := s.grpcServer(alone),
		&http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 3)
	go func() { failed <- split(listener, s.connections, stream, plain) }()
	go func() { failed <- grpcServer.Serve(stream) }()
	go func() { failed <- httpServer.Serve(plain) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		waiting, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
		err = s.Drain(waiting)
		shut(waiting, grpcServer, httpServer)
		stop()
	}
	grpcServer.Stop()
	httpServer.Close()
	listener.Close()
	return err
}

// shut waits a moment, so that answers being sent can arrive.
func shut(ctx context.Context, g *grpc.Server, h *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { g.GracefulStop(); close(done) }()
	_ = h.Shutdown(ctx) // the remaining connections are closed next
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// spareStreams is how many streams a connection may have in addition to its sessions. A client needs one, and more to
// be told that there are too many sessions.
const spareStreams = 64

// grpcServer returns the server of streams. alone says that only this machine can reach it.
func (s *Service) grpcServer(alone bool) *grpc.Server {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(rpc.MostMessage), grpc.ForceServerCodecV2(s.decoding),
		// Per connection: every session, so that surplus ones are refused with a message, and the streams of calls.
		grpc.MaxConcurrentStreams(uint32(s.o.MostSessions+spareStreams)),
		// Fixed windows bound what a client can send while the queue is full.
		grpc.InitialWindowSize(1<<20), grpc.InitialConnWindowSize(4<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.StreamInterceptor(s.guard(alone)),
	)
	rpc.RegisterSandboxServer(g, grpcServer{service: s})
	return g
}

// guard checks the token, refuses web pages if alone, and turns a panic into an error of one stream.
func (s *Service) guard(alone bool) grpc.StreamServerInterceptor {
	return func(server any, conn grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		md, _ := metadata.FromIncomingContext(conn.Context())
		authorization := ""
		if bears := md.Get("authorization"); len(bears) > 0 {
			authorization = bears[0]
		}
		c := s.clients.find(authorization)
		if c == nil {
			s.auditStranger(info.FullMethod, remoteOf(conn.Context()))
			return errNoToken
		}
		if err := foreignStream(md); alone && err != nil {
			return status.Error(codes.PermissionDenied, err.Error())
		}
		owned := &ownedStream{ServerStream: conn, service: s, client: c, method: info.FullMethod,
			authorization: authorization, ctx: as(conn.Context(), c)}
		return rescue.Do(func() error { return next(server, owned) })
	}
}

// errNoToken ends a stream whose token is not, or no longer, valid.
var errNoToken = status.Error(codes.Unauthenticated, "the stream has no valid token")

// ownedStream is a stream of a client.
type ownedStream struct {
	grpc.ServerStream
	service       *Service
	client        *client
	method        string
	authorization string
	ctx           context.Context
}

// Context returns the stream's context, which names the client.
func (o *ownedStream) Context() context.Context { return o.ctx }

// RecvMsg reads a request, and checks that the token is still valid.
func (o *ownedStream) RecvMsg(m any) error {
	o.service.decoding.owners.Store(m, o.ctx)
	err := o.ServerStream.RecvMsg(m)
	o.service.decoding.owners.Delete(m) // nothing was decoded if the stream has ended
	if err == nil && o.service.clients.find(o.authorization) != o.client {
		o.service.decoding.release(m)
		o.service.auditStranger(o.method, remoteOf(o.ctx))
		return errNoToken
	}
	return err
}

// remoteOf returns the address from which a stream comes.
func remoteOf(ctx context.Context) string {
	if p, known := peer.FromContext(ctx); known {
		return p.Addr.String()
	}
	return ""
}

// How long the service waits before it accepts again after it ran out of descriptors or memory.
const (
	acceptFirst = 5 * time.Millisecond
	acceptMost  = time.Second
)

// passing reports whether a later Accept may succeed: the machine or the process ran out of a resource, or the
// connection had been closed.
func passing(err error) bool {
	for _, code := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED,
		unix.ECONNRESET, unix.EINTR} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// split passes each connection to its protocol's server, and refuses connections beyond the limit.
func split(from net.Listener, all *connections, stream, plain *branch) error {
	defer stream.Close()
	defer plain.Close()
	wait := time.Duration(0)
	for {
		conn, err := from.Accept()
		if passing(err) { // the listener still works
			wait = min(max(2*wait, acceptFirst), acceptMost)
			time.Sleep(wait)
			continue
		}
		if err != nil {
			return err
		}
		wait = 0
		conn, room := all.admit(conn)
		if !room {
			all.refuse(conn)
			continue
		}
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			streams, begun, err := begin(conn)
			_ = conn.SetReadDeadline(time.Time{})
			switch {
			case err != nil:
				conn.Close()
			case streams:
				stream.offer(begun)
			default:
				plain.offer(begun)
			}
		}()
	}
}

// begin reads the beginning of a connection and reports whether it is a stream's. An error means that nothing arrived.
func begin(conn net.Conn) (stream bool, begun net.Conn, err error) {
	head := make([]byte, len(preface))
	n, err := io.ReadFull(conn, head)
	if n == 0 && err != nil {
		return false, nil, err
	}
	return bytes.Equal(head, preface), &begunConn{Conn: conn, head: head[:n]}, nil
}

// begunConn first returns what has been read from the connection.
type begunConn struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// branch is a listener for connections that have been accepted elsewhere.
type branch struct {
	addr  net.Addr
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func newBranch(addr net.Addr) *branch {
	return &branch{addr: addr, conns: make(chan net.Conn), over: make(chan struct{})}
}

func (b *branch) offer(c net.Conn) {
	select {
	case b.conns <- c:
	case <-b.over:
		c.Close()
	}
}

// Accept waits for a connection.
func (b *branch) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The connections remain open.
func (b *branch) Close() error {
	b.once.Do(func() { close(b.over) })
	return nil
}

// Addr returns the address of the shared listener.
func (b *branch) Addr() net.Addr { return b.addr }
