package setup

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store/s3"
)

// bucketServer answers what set-up asks of a bucket, as Amazon's server does: it has versions and lifecycle rules.
type bucketServer struct {
	mu                sync.Mutex
	exists, versioned bool
	rules             string // the body of the last PUT; "" if there was none
}

func (b *bucketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	query := r.URL.Query()
	_, versioning := query["versioning"]
	_, lifecycle := query["lifecycle"]
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodHead && !b.exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodHead:
	case versioning && r.Method == http.MethodPut:
		b.versioned = strings.Contains(string(body), "<Status>Enabled</Status>")
	case versioning && b.versioned:
		_, _ = io.WriteString(w, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
	case versioning:
		_, _ = io.WriteString(w, "<VersioningConfiguration/>")
	case lifecycle && r.Method == http.MethodPut:
		b.rules = string(body)
	case lifecycle && b.rules == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>")
	case lifecycle:
		_, _ = io.WriteString(w, b.rules)
	case r.Method == http.MethodPut:
		b.exists = true
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

func open(t *testing.T, b *bucketServer) *s3.Store {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "ropewalk", AccessKey: "key", SecretKey: "secret"})
	require.NoError(t, err)
	return s
}

func states(f Findings) map[string]State {
	out := map[string]State{}
	for _, one := range f {
		out[one.What] = one.State
	}
	return out
}

// What is missing is created once; a second call finds nothing to do, and rules of others stay.
func TestCreateStore(t *testing.T) {
	b := &bucketServer{}
	s, o := open(t, b), StoreOptions{KeepDeleted: 30}
	before, err := OfStore(t.Context(), s, o)
	require.NoError(t, err)
	require.Equal(t, Missing, states(before)["bucket"])
	require.NoError(t, CreateStore(t.Context(), s, o))
	after, err := OfStore(t.Context(), s, o)
	require.NoError(t, err)
	require.Equal(t, map[string]State{"bucket": OK, "conditional puts": Note, "versioning": OK,
		"lifecycle of unfinished uploads": OK, "lifecycle of deleted versions": OK}, states(after))
	var sent struct {
		Rule []struct {
			ID                             string
			Status                         string
			AbortIncompleteMultipartUpload struct{ DaysAfterInitiation int }
			NoncurrentVersionExpiration    struct{ NoncurrentDays int }
			Expiration                     *struct{ Days int }
		}
	}
	require.NoError(t, xml.Unmarshal([]byte(b.rules), &sent))
	require.Len(t, sent.Rule, 2)
	for _, r := range sent.Rule {
		require.Equal(t, "Enabled", r.Status)
		require.Nil(t, r.Expiration, "current objects are never deleted")
	}
	require.Equal(t, uploadsRule, sent.Rule[0].ID)
	require.Equal(t, uploadDays, sent.Rule[0].AbortIncompleteMultipartUpload.DaysAfterInitiation)
	require.Equal(t, noncurrentRule, sent.Rule[1].ID)
	require.Equal(t, 30, sent.Rule[1].NoncurrentVersionExpiration.NoncurrentDays)
	was := b.rules
	require.NoError(t, CreateStore(t.Context(), s, o))
	require.Equal(t, was, b.rules)
}

// A rule that deletes current objects is named, whatever else it does; it stays when other rules are added.
func TestARuleThatDeletesTheRecord(t *testing.T) {
	b := &bucketServer{exists: true, rules: `<LifecycleConfiguration><Rule><ID>tidy</ID><Status>Enabled</Status>
		<Filter><Prefix>runs/</Prefix></Filter><Expiration><Days>90</Days></Expiration></Rule>
		<Rule><ID>off</ID><Status>Disabled</Status><Filter><Prefix></Prefix></Filter>
		<Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>`}
	s := open(t, b)
	f, err := OfStore(t.Context(), s, StoreOptions{})
	require.NoError(t, err)
	require.True(t, f.Has(Conflict))
	require.Equal(t, Conflict, states(f)["lifecycle rule tidy"])
	require.NotContains(t, states(f), "lifecycle rule off", "it is disabled")
	require.Equal(t, Note, states(f)["versioning"])
	require.NoError(t, CreateStore(t.Context(), s, StoreOptions{}))
	require.Contains(t, b.rules, "<ID>tidy</ID>")
	require.Contains(t, b.rules, "<ID>off</ID>")
	require.Contains(t, b.rules, uploadsRule)
}

func TestAServerWithoutTheBucketsSettings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = io.WriteString(w, "<Error><Code>NotImplemented</Code></Error>")
		}
	}))
	defer server.Close()
	s, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "ropewalk", AccessKey: "key", SecretKey: "secret"})
	require.NoError(t, err)
	f, err := OfStore(t.Context(), s, StoreOptions{})
	require.NoError(t, err)
	require.False(t, f.Has(Missing, Conflict), f)
	require.Equal(t, Note, states(f)["lifecycle"])
	f, err = OfStore(t.Context(), s, StoreOptions{KeepDeleted: 1})
	require.NoError(t, err)
	require.Equal(t, Conflict, states(f)["versioning"])
}
