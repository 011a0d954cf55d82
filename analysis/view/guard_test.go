package view_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
)

func TestGuard(t *testing.T) {
	g, err := view.GuardFor(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8377}, "secret")
	require.NoError(t, err)
	handler := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	ask := func(method, target, host, cookie string) *http.Response {
		r := httptest.NewRequest(method, target, nil)
		r.Host = host
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: "ropewalk-view-8377", Value: cookie})
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
	const here = "127.0.0.1:8377"
	for _, c := range []struct {
		name, method, target, host, cookie string
		want                               int
	}{
		{"the cookie", "GET", "/api/state", here, "secret", 200},
		{"this machine's name", "GET", "/api/state", "LOCALHOST:8377", "secret", 200},
		{"nothing", "GET", "/api/state", here, "", 403},
		{"another cookie", "GET", "/api/state", here, "guess", 403},
		{"another token", "GET", "/r/?token=guess", here, "", 403},
		{"another site's name", "GET", "/api/state", "evil.example:8377", "secret", 421},
		{"another site's name with the token", "GET", "/r/?token=secret", "evil.example:8377", "", 421},
		{"a change", "POST", "/api/state", here, "secret", 405},
		{"the link", "GET", "/r/?t=1&token=secret", here, "", 303},
		{"a link of two slashes", "GET", "//evil.example/?token=secret", here, "", 303},
	} {
		got := ask(c.method, c.target, c.host, c.cookie)
		require.Equal(t, c.want, got.StatusCode, c.name)
		require.Contains(t, got.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", c.name)
		if c.want != http.StatusSeeOther {
			continue
		}
		cookies := got.Cookies()
		require.Len(t, cookies, 1)
		require.True(t, cookies[0].HttpOnly)
		require.Equal(t, http.SameSiteLaxMode, cookies[0].SameSite)
		require.NotContains(t, got.Header.Get("Location"), "secret", "the token leaves the address bar")
		require.NotRegexp(t, "^//", got.Header.Get("Location"))
	}
	require.Equal(t, "/r/?t=1", ask("GET", "/r/?t=1&token=secret", here, "").Header.Get("Location"))

	open, err := view.GuardFor(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, "secret")
	require.NoError(t, err)
	require.False(t, open.Loopback, "other machines have their own names for this one")
	require.NotEqual(t, view.NewToken(), view.NewToken())
	w := httptest.NewRecorder()
	(view.Guard{}).Wrap(handler).ServeHTTP(w, httptest.NewRequest("GET", "/?token=", nil))
	require.Equal(t, http.StatusForbidden, w.Code, "without a token no one enters")
}
