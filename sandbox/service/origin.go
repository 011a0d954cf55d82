package service

import (
	"fmt"
	"mime"
	"net"
	"net/http"

	"google.golang.org/grpc/metadata"

	"github.com/ropewalk/ropewalk/internal/loopback"
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
	if err := loopback.Foreign(r); err != nil {
		return httpError{http.StatusForbidden, ErrorDetail{kindForbidden, "", err.Error()}}
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
		if !loopback.Names(host) {
			return fmt.Errorf(":authority is %q: a service that listens on loopback is asked by 127.0.0.1, [::1] or "+
				"localhost", host)
		}
	}
	if origin := md.Get("origin"); len(origin) > 0 {
		return fmt.Errorf("origin is %q: web pages are refused", origin[0])
	}
	return nil
}

// onLoopback reports whether only this machine can reach an address.
func onLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
