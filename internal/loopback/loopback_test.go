package loopback_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/loopback"
)

func TestForeign(t *testing.T) {
	type header map[string]string
	for _, c := range []struct {
		method, host string
		header       header
		foreign      string
	}{
		{"GET", "127.0.0.1:8233", nil, ""},
		{"POST", "localhost:9000", header{"Origin": "http://localhost:9000", "Sec-Fetch-Site": "same-origin"}, ""},
		{"POST", "[::1]:8233", header{"Origin": "http://[::1]:8233"}, ""},
		{"GET", "localhost", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "document"}, ""},
		{"GET", "evil.example:8233", nil, "Host"},
		{"GET", "127.0.0.1.evil.example", nil, "Host"},
		{"GET", "localhost.evil.example:8233", nil, "Host"},
		{"GET", "10.0.0.1:8233", nil, "Host"},
		{"GET", "", nil, "Host"},
		{"POST", "127.0.0.1:8233", header{"Origin": "https://evil.example"}, "Origin"},
		{"POST", "127.0.0.1:8233", header{"Origin": "null"}, "Origin"},
		{"POST", "127.0.0.1:8233", header{"Origin": "http://127.0.0.1:3000"}, "Origin"},
		{"POST", "127.0.0.1:8233", header{"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site"},
		{"POST", "127.0.0.1:8233", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "document"}, "Sec-Fetch-Site"}, // a form
		{"GET", "127.0.0.1:8233", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "iframe"}, "Sec-Fetch-Site"},
		{"GET", "127.0.0.1:8233", header{"Sec-Fetch-Site": "same-site"}, "Sec-Fetch-Site"}, // another port
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Host = c.host
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		err := loopback.Foreign(r)
		if c.foreign == "" {
			require.NoError(t, err, "%s %v", c.host, c.header)
		} else {
			require.ErrorContains(t, err, c.foreign+" is ", "%s %v", c.host, c.header)
		}
	}
}
