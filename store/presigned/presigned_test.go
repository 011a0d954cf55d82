package presigned_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
)

const token = "token-of-node-1-4711"

func client(name string, tokens ...string) presigned.Client {
	c := presigned.Client{Name: name}
	for _, t := range tokens {
		c.Tokens = append(c.Tokens, sha256.Sum256([]byte(t)))
	}
	return c
}

// everything permits all operations.
func everything() presigned.Policy {
	return presigned.Policy{{Operations: []s3.Operation{s3.OpGet, s3.OpHead, s3.OpPut, s3.OpPutIfAbsent, s3.OpDelete,
		s3.OpList, s3.OpBeginUpload, s3.OpPutPart, s3.OpListParts, s3.OpCompleteUpload, s3.OpAbortUpload,
		s3.OpListUploads}, Match: func(string) bool { return true }}}
}

// setup is a presigner in front of a bucket of a real server.
type setup struct {
	owner   *s3.Store // has the credentials
	address string
	log     *transcript.Transcript // of the presigner
	answers *answers
}

// answers counts the answers of a presigner by operation and outcome.
type answers struct {
	mu    sync.Mutex
	count map[[2]string]int
}

func (a *answers) Answered(operation, outcome string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if took >= 0 {
		a.count[[2]string{operation, outcome}]++
	}
}

func (a *answers) of(operation, outcome string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[[2]string{operation, outcome}]
}

// requests notes the operations and statuses of a client's requests.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) Request(operation string, status int, _ time.Duration, _, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s %d", operation, status))
}

func start(t *testing.T, server storetest.Server, bucket string, policy presigned.Policy, life time.Duration) setup {
	t.Helper()
	owner, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	require.NoError(t, owner.EnsureBucket(t.Context()))
	out := setup{owner: owner, log: &transcript.Transcript{}, answers: &answers{count: map[[2]string]int{}}}
	service := presigned.NewService(presigned.ServiceOptions{Store: owner, Policy: policy, Life: life,
		Clients:  []presigned.Client{client("node-0", "another-token"), client("node-1", token)},
		Observer: out.answers,
		Log:      slog.New(slog.NewTextHandler(out.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	listening := httptest.NewServer(service.Handler())
	t.Cleanup(listening.Close)
	out.address = listening.URL
	return out
}

// open returns the store of a client.
func (s setup) open(t *testing.T, transport http.RoundTripper) *s3.Store {
	t.Helper()
	objects, err := presigned.Open(t.Context(), presigned.Options{Address: s.address, Token: token,
		Store: s3.Options{PartSize: 5 << 20, Transport: transport}})
	require.NoError(t, err)
	return objects
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	var buckets atomic.Int32
	storetest.Run(t, func(t *testing.T) store.Store {
		return start(t, server, fmt.Sprintf("presigned-%d", buckets.Add(1)), everything(), 0).open(t, nil)
	})
}

// A client is refused what the policy does not permit, and is told the key and its name. It does not ask again. The
// presigner counts it, and so does the client, as a refusal.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	only := presigned.Policy{{Operations: []s3.Operation{s3.OpGet, s3.OpPut, s3.OpHead}, Match: func(key string) bool {
		return strings.HasPrefix(key, "mine/")
	}}}
	at := start(t, server, "refusals", only, 0)
	s := at.open(t, nil)
	require.NoError(t, s.Put(t.Context(), "mine/a", []byte("a")))
	require.NoError(t, at.owner.Put(t.Context(), "other/a", []byte("a")))
	_, err := s.Get(t.Context(), "mine/none")
	require.ErrorIs(t, err, store.ErrNotFound)

	large := bytes.NewReader(make([]byte, 6<<20))
	_, get := s.Get(t.Context(), "other/a")
	_, list := s.List(t.Context(), "mine/")
	for what, err := range map[string]error{
		"get other/a":               get,
		"put other/a":               s.Put(t.Context(), "other/a", []byte("b")),
		"put_if_absent mine/b":      s.PutIfAbsent(t.Context(), "mine/b", []byte("b")),
		"delete mine/a":             s.Delete(t.Context(), "mine/a"),
		"list mine/":                list,
		"list_uploads mine/large":   s.PutFrom(t.Context(), "mine/large", large, large.Size()),
		"abort_upload other/upload": s.Abort(t.Context(), store.Upload{Key: "other/upload", ID: "1"}),
	} {
		require.ErrorIs(t, err, store.ErrCredentials, what)
		require.ErrorContains(t, err, "client node-1 may not "+what)
		logged := strings.Count(at.log.String(), `node-1 may not `+what+`"`)
		require.Equal(t, 1, logged, "asked once, and logged: %s", what)
	}
	left, err := at.owner.Get(t.Context(), "other/a")
	require.NoError(t, err)
	require.Equal(t, "a", string(left))

	require.Equal(t, 1, at.answers.of("put", "signed"))
	require.Equal(t, 1, at.answers.of("get", "signed"))
	for _, o := range []s3.Operation{s3.OpGet, s3.OpPut, s3.OpPutIfAbsent, s3.OpDelete, s3.OpList, s3.OpListUploads,
		s3.OpAbortUpload} {
		require.Equal(t, 1, at.answers.of(string(o), "forbidden"), o)
	}
	seen := &requests{}
	counted, err := presigned.Open(t.Context(), presigned.Options{Address: at.address, Token: token,
		Store: s3.Options{Observer: seen}})
	require.NoError(t, err)
	require.ErrorIs(t, counted.Put(t.Context(), "other/a", nil), store.ErrCredentials)
	require.Equal(t, []string{"put 403"}, seen.all)

	require.Zero(t, at.answers.of("unknown", "unauthorized"))
	_, err = presigned.Open(t.Context(), presigned.Options{Address: at.address, Token: "guessed"})
	require.ErrorIs(t, err, store.ErrCredentials)
	require.Eventually(t, func() bool { return at.answers.of("unknown", "unauthorized") == 1 }, time.Minute,
		time.Millisecond, "the wrong token is counted")
	require.Regexp(t, `refused address=127\.0\.0\.1:\d+ status=401 error="no valid token"`, at.log.String())
	require.NotContains(t, at.log.String(), "guessed")
	require.ErrorContains(t, err, "the request has no valid token")
	possible := presigned.Answers()
	require.Len(t, possible, 2+3*len(s3.Operations()))
	at.answers.mu.Lock()
	for answer := range at.answers.count {
		require.Contains(t, possible, answer)
	}
	at.answers.mu.Unlock()
	_, err = presigned.Open(t.Context(), presigned.Options{Address: at.address})
	require.ErrorContains(t, err, "wants a token")
	_, err = presigned.Open(t.Context(), presigned.Options{Address: server.Endpoint, Token: token})
	require.Error(t, err, "an S3 server is no presigner")
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://h:8291", "https://h", "http://127.0.0.1:1", "http://[::1]:1/",
		"http://localhost:1"} {
		require.NoError(t, presigned.CheckAddress(address), address)
	}
	for _, address := range []string{"", "h:8291", "http://h:1", "http://127.0.0.1.example.org", "ftp://h",
		"https://h/path", "https://h?x=1", "https://user:hunter2@h:1", "https://user:hunter2@h:port"} {
		err := presigned.CheckAddress(address)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// ask returns the presigner's answer to a question as it is.
func (s setup) ask(t *testing.T, r s3.Request) (status int, address string) {
	t.Helper()
	question, err := json.Marshal(r)
	require.NoError(t, err)
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.address+"/v1/presign",
		bytes.NewReader(question))
	require.NoError(t, err)
	asked.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(asked)
	require.NoError(t, err)
	defer answer.Body.Close()
	var body struct{ URL string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	return answer.StatusCode, body.URL
}

// send sends a request to a presigned URL and returns the status.
func send(t *testing.T, method, address string, header map[string]string, content string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(content))
	require.NoError(t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	return answer.StatusCode
}

// changed is a URL with another part.
func changed(t *testing.T, address, old, part string) string {
	t.Helper()
	require.Contains(t, address, old)
	return strings.Replace(address, old, part, 1)
}

func sum(content string) string {
	digest := md5.Sum([]byte(content))
	return base64.StdEncoding.EncodeToString(digest[:])
}

// A URL permits exactly the request that was asked for.
func TestAURLPermitsOneRequest(t *testing.T) {
	t.Parallel()
	at := start(t, storetest.Versitygw(t), "one-request", everything(), 0)
	require.NoError(t, at.owner.Put(t.Context(), "secret/a", []byte("secret")))
	require.NoError(t, at.owner.Put(t.Context(), "a", []byte("0123456789")))

	header := map[string]string{"Content-Md5": sum("mine"), "If-None-Match": "*"}
	asked := map[string]string{"Content-Length": "4"}
	maps.Copy(asked, header)
	status, address := at.ask(t, s3.Request{Method: "PUT", Key: "m/gen=0.json", Header: asked})
	require.Equal(t, http.StatusOK, status)
	without := func(name string) map[string]string {
		left := maps.Clone(header)
		delete(left, name)
		return left
	}
	with := func(name, value string) map[string]string {
		more := maps.Clone(header)
		more[name] = value
		return more
	}
	for what, got := range map[string]int{
		"another key":            send(t, "PUT", changed(t, address, "gen%3D0", "gen%3D1"), header, "mine"),
		"another method":         send(t, "DELETE", address, header, ""),
		"an unconditional put":   send(t, "PUT", address, without("If-None-Match"), "mine"),
		"other content":          send(t, "PUT", address, header, "fake"),
		"another sum":            send(t, "PUT", address, with("Content-Md5", sum("fake")), "fake"),
		"more content":           send(t, "PUT", address, header, "mine and more"),
		"another query":          send(t, "PUT", address+"&partNumber=1&uploadId=x", header, "mine"),
		"a longer life":          send(t, "PUT", changed(t, address, "Expires=60", "Expires=9999"), header, "mine"),
		"a copy of other object": send(t, "PUT", address, with("X-Amz-Copy-Source", "one-request/secret/a"), "mine"),
	} {
		require.GreaterOrEqual(t, got, 400, what)
		require.Less(t, got, 500, what)
	}
	_, err := at.owner.Get(t.Context(), "m/gen=0.json")
	require.ErrorIs(t, err, store.ErrNotFound, "nothing was written")
	require.Equal(t, http.StatusOK, send(t, "PUT", address, header, "mine"))
	require.Equal(t, http.StatusPreconditionFailed, send(t, "PUT", address, header, "mine"))

	status, address = at.ask(t, s3.Request{Method: "GET", Key: "a", Header: map[string]string{"Range": "bytes=0-1"}})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, http.StatusPartialContent, send(t, "GET", address, map[string]string{"Range": "bytes=0-1"}, ""))
	require.Equal(t, http.StatusForbidden, send(t, "GET", address, map[string]string{"Range": "bytes=0-9"}, ""))
	require.Equal(t, http.StatusForbidden, send(t, "GET", address, nil, ""))

	put := func(name, value string) s3.Request {
		return s3.Request{Method: "PUT", Key: "b", Header: map[string]string{"Content-Length": "1", "Content-Md5": "x",
			name: value}}
	}
	for what, r := range map[string]s3.Request{
		"content without a sum":     {Method: "PUT", Key: "b", Header: map[string]string{"Content-Length": "1"}},
		"another condition":         put("If-None-Match", "etag"),
		"a copy":                    put("X-Amz-Copy-Source", "one-request/a"),
		"a policy":                  {Method: "PUT", Query: url.Values{"policy": {""}}},
		"another object's versions": {Method: "GET", Key: "a", Query: url.Values{"versionId": {"1"}}},
		"another method":            {Method: "PATCH", Key: "a"},
		"a key that is a path":      {Method: "GET", Key: "a/../secret/a"},
		"no prefix":                 {Method: "GET", Query: url.Values{"list-type": {"2"}}},
	} {
		status, address := at.ask(t, r)
		require.Equal(t, http.StatusBadRequest, status, what)
		require.Empty(t, address, what)
	}
	require.Eventually(t, func() bool { return at.answers.of("unknown", "malformed") == 8 }, time.Minute,
		time.Millisecond, "all of them are counted")
}

// A URL that was too old when its request arrived is replaced by a new one.
func TestExpiry(t *testing.T) {
	t.Parallel()
	at := start(t, storetest.Versitygw(t), "expiry", everything(), 2*time.Second)
	require.NoError(t, at.owner.Put(t.Context(), "a", []byte("content")))
	var slow atomic.Bool
	slow.Store(true)
	s := at.open(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		for {
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil || answer.StatusCode == http.StatusForbidden || !slow.Load() {
				return answer, err
			}
			_ = answer.Body.Close() // the URL is still valid
			time.Sleep(50 * time.Millisecond)
		}
	}))
	go func() {
		for strings.Count(at.log.String(), "operation=get") < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		slow.Store(false)
	}()
	data, err := s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "content", string(data))
	require.GreaterOrEqual(t, strings.Count(at.log.String(), "operation=get"), 2)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Errors, names and logs hold neither a URL's signature nor a token, even if the S3 server repeats the URL.
func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	seen.Store("")
	mode := ""
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.URL.Query().Get("X-Amz-Signature"))
		address := "http://" + r.Host + r.URL.String()
		switch mode {
		case "xml":
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "<Error><Code>Strange</Code><Message>%s</Message></Error>",
				strings.ReplaceAll(address, "&", "&amp;"))
		case "text":
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, address)
		case "redirect":
			http.Redirect(w, r, address+"&again", http.StatusFound)
		case "broken":
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(stub.Close)
	owner, err := s3.New(s3.Options{Endpoint: stub.URL, Bucket: "bucket", AccessKey: "key", SecretKey: "hunter2"})
	require.NoError(t, err)
	log := &transcript.Transcript{}
	service := httptest.NewServer(presigned.NewService(presigned.ServiceOptions{Store: owner, Policy: everything(),
		Clients: []presigned.Client{client("node-1", token)},
		Log:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}).Handler())
	t.Cleanup(service.Close)
	s, err := presigned.Open(t.Context(), presigned.Options{Address: service.URL, Token: token})
	require.NoError(t, err)
	require.Equal(t, "s3://bucket at "+stub.URL+" through "+service.URL, s.String())
	for _, mode = range []string{"xml", "text", "redirect", "broken"} {
		ctx, cancel := context.WithCancel(t.Context())
		seen.Store("")
		if mode == "broken" { // it is tried again, so end it
			go func() {
				for seen.Load() == "" {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		_, get := s.Get(ctx, "a")
		put := s.Put(ctx, "a", []byte("a"))
		_, list := s.List(ctx, "a")
		cancel()
		for _, err := range []error{get, put, list} {
			require.Error(t, err, mode)
			for _, secret := range []string{seen.Load().(string), "aws4_request", token, "hunter2"} {
				require.NotEmpty(t, secret, "%s: %v", mode, err)
				require.NotContains(t, err.Error(), secret, mode)
				require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), secret, mode)
			}
		}
	}
	require.Contains(t, log.String(), "operation=get key=a")
	require.NotContains(t, log.String(), "X-Amz")
	require.NotContains(t, log.String(), token)
}
