package view

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/ropewalk/ropewalk/internal/loopback"
)

// Guard lets through only who holds the token: in the link's query, which sets a cookie, or in that cookie.
type Guard struct {
	Token string
	// Loopback answers to the names of this machine alone, so that no other site's name can be pointed at this server
	// (DNS rebinding).
	Loopback bool
	// Cookie is the cookie's name. Browsers do not keep the cookies of two ports of one host apart.
	Cookie string
}

// tokenKey is the token's name in the link's query.
const tokenKey = "token"

// NewToken draws a token that cannot be guessed.
func NewToken() string {
	bytes := make([]byte, 24)
	_, _ = rand.Read(bytes) // never fails
	return base64.RawURLEncoding.EncodeToString(bytes)
}

// GuardFor returns the guard of a server that listens on an address. On a loopback address it answers to the names of
// this machine alone.
func GuardFor(address net.Addr, token string) (Guard, error) {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return Guard{}, fmt.Errorf("guard %s: %w", address, err)
	}
	g := Guard{Token: token, Cookie: "ropewalk-view-" + port, Loopback: loopback.Names(host)}
	return g, nil
}

// policy lets the browser run and load what this server sends, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Wrap guards a handler that only reads.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		switch {
		case g.Loopback && !loopback.Names(r.Host):
			http.Error(w, "this server does not answer to the name "+r.Host, http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "this server only reads", http.StatusMethodNotAllowed)
		case g.enters(w, r):
		case !g.known(r):
			http.Error(w, "open the link that `ropewalk view` printed: it holds the token that lets you in",
				http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// enters answers a request whose query holds the token: with the cookie, and the same address without the token.
func (g Guard) enters(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if !g.is(query.Get(tokenKey)) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: g.Cookie, Value: g.Token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	query.Del(tokenKey)
	to := *r.URL
	to.Scheme, to.Host, to.RawQuery = "", "", query.Encode()
	to.Path = "/" + strings.TrimLeft(to.Path, "/") // two slashes would name another server
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return true
}

func (g Guard) known(r *http.Request) bool {
	c, err := r.Cookie(g.Cookie)
	return err == nil && g.is(c.Value)
}

func (g Guard) is(token string) bool {
	return g.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1
}
