package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/loopback"
)

// Temporal's web UI asks no one who he is, accepts every Host, and forwards to the whole of Temporal: a web page could
// start workflows through it, and with them programs. So the UI listens on an inner address, which changes with every
// start, and webGuard passes on to it what no page of another origin can have sent.

// webGuard is the proxy on the UI's own port. It lives as long as the supervisor of Temporal.
type webGuard struct {
	server http.Server
	port   port
	inner  atomic.Pointer[innerUI]
}

// innerUI is where the UI listens, and the address from which it is asked.
type innerUI struct {
	host string
	port int
	from net.IP
}

func (u innerUI) address() string { return net.JoinHostPort(u.host, strconv.Itoa(u.port)) }

// newInnerUI chooses an address on loopback that no page can guess, and another to ask from.
func newInnerUI() (u innerUI, err error) {
	random := func() net.IP { return net.IPv4(127, byte(1+rand.N(254)), byte(rand.N(256)), byte(1+rand.N(254))) }
	u.host, u.from = random().String(), random()
	u.port, err = freePort(u.host)
	return u, err
}

// listen listens on the port, or on a free one if it is taken. Another stack may take it once it is chosen.
func (p *port) listen(say func(string)) (net.Listener, error) {
	for try := 1; ; try++ {
		if err := p.choose(say); err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", p.address())
		if err == nil || try == 10 || !errors.Is(err, unix.EADDRINUSE) {
			return l, err
		}
	}
}

// openGuard listens on the port, or on a free one if it is taken.
func openGuard(p port, say func(string)) (*webGuard, error) {
	g := &webGuard{port: p}
	listener, err := g.port.listen(say)
	if err != nil {
		return nil, fmt.Errorf("listen for Temporal's web UI: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: g.inner.Load().from}}
			return from.DialContext(ctx, network, address)
		}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: g.inner.Load().address()})
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "Temporal's web UI does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	g.server = http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := loopback.Foreign(r); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			if g.inner.Load() == nil {
				http.Error(w, "Temporal's web UI has not started yet", http.StatusBadGateway)
				return
			}
			proxy.ServeHTTP(w, r)
		})}
	go func() { _ = g.server.Serve(listener) }() // ends with the process
	return g, nil
}

func (g *webGuard) url() string { return "http://" + g.port.address() }
