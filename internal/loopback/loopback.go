// Package loopback tells a program's request on this machine from a web page's. A server on loopback that asks
// for no password is reached by every page in a browser on the machine: directly, with requests that need no preflight,
// and by DNS rebinding, where the page's own name is made to mean 127.0.0.1.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Foreign returns an error if a web page of another origin can have sent the request. It accepts links that a person
// follows, which read a page.
func Foreign(r *http.Request) error {
	if !Names(r.Host) {
		return fmt.Errorf("the header Host is %q: a server on loopback is asked by 127.0.0.1, [::1] or localhost",
			r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if !same(origin, r.Host) {
			return fmt.Errorf("the header Origin is %q: web pages of other origins are refused; send the request from "+
				"a program, without Origin", origin)
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && !follows(r) {
		return fmt.Errorf("the header Sec-Fetch-Site is %q: web pages of other origins are refused", site)
	}
	return nil
}

// follows reports whether the request opens a page in a tab of its own.
func follows(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// Names reports whether a Host header, with or without a port, always names this machine.
func Names(host string) bool {
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

func same(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}
