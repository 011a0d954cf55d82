package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// preface is how an HTTP/2 connection begins, and no HTTP/1.1 one: the stream is told from the rest by it.
var preface = []byte("PRI ")

// Serve answers both protocols on one listener until ctx ends; then it drains for at most patience
// and returns. With a certificate in secure, both are spoken over TLS.
func (s *Service) Serve(ctx context.Context, listener net.Listener, secure *tls.Config, patience time.Duration) error {
	if secure != nil {
		secure = secure.Clone()
		// Whoever can speak HTTP/1.1 shall: HTTP/2 is the stream's.
		secure.NextProtos = []string{"http/1.1", "h2"}
		listener = tls.NewListener(listener, secure)
	}
	stream, plain := newBranch(listener.Addr()), newBranch(listener.Addr())
	// A connection that is idle gives its room back.
	grpcServer, httpServer := s.grpcServer(), &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 3)
	go func() { failed <- split(listener, s.connections, stream, plain) }()
	go func() { failed <- grpcServer.Serve(stream) }()
	go func() { failed <- httpServer.Serve(plain) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		waiting, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		err = s.Drain(waiting)
		shut(waiting, grpcServer, httpServer)
		stop()
	}
	grpcServer.Stop()
	httpServer.Close()
	listener.Close()
	return err
}

// shut lets answers that are under way arrive, for a moment.
func shut(ctx context.Context, g *grpc.Server, h *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { g.GracefulStop(); close(done) }()
	_ = h.Shutdown(ctx) // whatever is left is closed next
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// spareStreams are those of a connection beyond its sessions. A client needs one, and more to be told that there are
// too many sessions.
const spareStreams = 64

func (s *Service) grpcServer() *grpc.Server {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(rpc.MostMessage),
		// Of one connection: every session, whose surplus is refused with words, and the streams of calls.
		grpc.MaxConcurrentStreams(uint32(s.o.MostSessions+spareStreams)),
		// Fixed windows: what a client can send ahead of a full queue is bounded.
		grpc.InitialWindowSize(1<<20), grpc.InitialConnWindowSize(4<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.StreamInterceptor(s.guard),
	)
	rpc.RegisterSandboxServer(g, grpcServer{service: s})
	return g
}

// guard asks for the token, and makes a panic one stream's error.
func (s *Service) guard(server any, conn grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	authorization := ""
	if md, ok := metadata.FromIncomingContext(conn.Context()); ok && len(md.Get("authorization")) > 0 {
		authorization = md.Get("authorization")[0]
	}
	if !s.admits(authorization) {
		return status.Error(codes.Unauthenticated, "the stream bears no token that this service knows")
	}
	return rescue.Do(func() error { return next(server, conn) })
}

// split hands each connection to the protocol it begins with, and turns those away that are too many.
func split(from net.Listener, all *connections, stream, plain *branch) error {
	defer stream.Close()
	defer plain.Close()
	for {
		conn, err := from.Accept()
		if err != nil {
			return err
		}
		conn, room := all.admit(conn)
		if !room {
			all.turnAway(conn)
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

// begin reads how a connection begins, and reports whether it is the stream's; an error says that nothing came.
func begin(conn net.Conn) (stream bool, begun net.Conn, err error) {
	head := make([]byte, len(preface))
	n, err := io.ReadFull(conn, head)
	if n == 0 && err != nil {
		return false, nil, err
	}
	return bytes.Equal(head, preface), &begunConn{Conn: conn, head: head[:n]}, nil
}

// begunConn gives back first what was read of it.
type begunConn struct {
	net.Conn
	head []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// branch is a listener whose connections somebody else accepts.
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

// Close ends Accept; the connections live on.
func (b *branch) Close() error {
	b.once.Do(func() { close(b.over) })
	return nil
}

// Addr is the shared listener's.
func (b *branch) Addr() net.Addr { return b.addr }
