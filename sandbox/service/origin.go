package service

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"google.golang.org/grpc/metadata"
)

// On loopback the service may need no token, and every web page in a browser on the machine can send it requests. So
// there it accepts only what no page of another origin can send: a Host that is loopback (otherwise a name that was
// rebound to 127.0.0.1 would work), no foreign Origin, and bodies declared as JSON, which a page cannot send without a
// preflight request.

// local passes on requests that no web page of another origin can have sent, and refuses the others.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch err := foreign(r); {
		case err != nil:
			refuse(w, err)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func foreign(r *http.Request) error {
	forbidden := func(format string, args ...any) error {
		return httpError{http.StatusForbidden, ErrorDetail{kindForbidden, "", fmt.Sprintf(format, args...)}}
	}
	if !loopbackHost(r.Host) {
		return forbidden("Host is %q: a service that listens on loopback is asked by 127.0.0.1, [::1] or localhost",
			r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		return forbidden("Origin is %q: web pages of other origins are refused; send the request from a program, "+
			"without Origin", origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return forbidden("Sec-Fetch-Site is %q: web pages of other origins are refused", site)
	}
	if r.Method != http.MethodPost || r.ContentLength == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return httpError{http.StatusUnsupportedMediaType, ErrorDetail{kindWrongType, "",
			fmt.Sprintf("Content-Type is %q, it must be application/json", r.Header.Get("Content-Type"))}}
	}
	return nil
}

// foreignStream is foreign for a stream's metadata. Programs set no origin.
func foreignStream(md metadata.MD) error {
	for _, host := range md.Get(":authority") {
		if !loopbackHost(host) {
			return fmt.Errorf(":authority is %q: a service that listens on loopback is asked by 127.0.0.1, [::1] or "+
				"localhost", host)
		}
	}
	if origin := md.Get("origin"); len(origin) > 0 {
		return fmt.Errorf("origin is %q: web pages are refused", origin[0])
	}
	return nil
}

// loopbackHost reports whether a Host header, with or without a port, always names this machine.
func loopbackHost(host string) bool {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}

// onLoopback reports whether only this machine can reach an address.
func onLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
