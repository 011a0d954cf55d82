package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Faults of the user's servers: for each the command says what is wrong and what to do, and exits.
func TestFaultsOfTheEnvironment(t *testing.T) {
	needs(t, sharedStack)
	with := func(more ...string) []string { return append(slices.Clone(shared.servers), more...) }
	endpoint := "AWS_ENDPOINT_URL_S3=" + variable(shared.servers, "AWS_ENDPOINT_URL_S3")
	closed := closedAddress(t)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want []string
	}{
		{"wrong secret", with("AWS_SECRET_ACCESS_KEY=wrong-secret-0815"), recipe("x"),
			[]string{"the secret does not belong to the access key; check AWS_SECRET_ACCESS_KEY"}},
		{"unknown key", with("AWS_ACCESS_KEY_ID=stranger"), recipe("x"),
			[]string{"the server does not know this access key; check AWS_ACCESS_KEY_ID"}},
		{"unknown key, reading", with("AWS_ACCESS_KEY_ID=stranger"), []string{"runs"},
			[]string{"check AWS_ACCESS_KEY_ID"}},
		{"no credentials", []string{endpoint}, recipe("x"),
			[]string{"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or unset AWS_ENDPOINT_URL_S3"}},
		{"missing bucket", with("ROPEWALK_S3_BUCKET=nowhere"), recipe("x"),
			[]string{"s3://nowhere", "create it, or name another in ROPEWALK_S3_BUCKET"}},
		{"missing bucket, reading", with("ROPEWALK_S3_BUCKET=nowhere"), []string{"verify", "x"},
			[]string{"s3://nowhere", "create it, or name another in ROPEWALK_S3_BUCKET"}},
		{"no S3 server", []string{"AWS_ENDPOINT_URL_S3=http://" + closed, "AWS_ACCESS_KEY_ID=a",
			"AWS_SECRET_ACCESS_KEY=b"}, recipe("x"),
			[]string{closed, "refused", "start it, or unset the variable to use a local one"}},
		{"a web server, reading", []string{"AWS_ENDPOINT_URL_S3=" + webServer(t), "AWS_ACCESS_KEY_ID=a",
			"AWS_SECRET_ACCESS_KEY=b"}, []string{"runs"},
			[]string{"the server answers with a web page (200 OK), as no S3 server does; check AWS_ENDPOINT_URL_S3"}},
		{"misspelt namespace", with("TEMPORAL_NAMESPACE=ropwalk"), recipe("x"),
			[]string{"has no namespace ropwalk", "did you mean ropewalk?", "\nits namespaces are ",
				"temporal operator namespace create --address"}},
		{"no Temporal server", with("TEMPORAL_ADDRESS=" + closed), recipe("x"), []string{closed, "TEMPORAL_ADDRESS"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t, t.TempDir(), c.env...)
			r := h.run(t, c.args...)
			require.Contains(t, []int{1, 2}, r.code, r.err)
			for _, want := range c.want {
				require.Contains(t, r.err, want)
			}
			require.NotContains(t, r.err, variable(shared.servers, "AWS_SECRET_ACCESS_KEY"))
			require.NotContains(t, r.err, "wrong-secret-0815")
			require.Empty(t, r.out)
			require.Less(t, strings.Count(r.err, "\n"), 25, "short enough to be read:\n%s", r.err)
			require.False(t, h.runs(), "nothing is left running")
		})
	}
}

// webServer starts a server that answers every request with a page.
func webServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html></html>")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// closedAddress returns an address on which no server listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
