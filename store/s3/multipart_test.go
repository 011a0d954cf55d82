package s3_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store/s3"
)

// The objects of these tests have six parts; the last one is shorter.
const (
	testPart = 5 << 20
	sixParts = 5*testPart + 12345
	blobKey  = "checkpoints/000001-0123456789abcdef/model.safetensors"
)

func content(seed byte) []byte {
	data := make([]byte, sixParts)
	for i := range data {
		data[i] = byte(i) ^ byte(i>>8)*31 ^ byte(i>>16)*7 ^ seed
	}
	return data
}

// requests counts the requests by kind, and lets a test change parts and completions.
type requests struct {
	mu    sync.Mutex
	count map[string]int
	part  func(nth int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
	whole func(nth int, send func() (*http.Response, error)) (*http.Response, error)
}

func (q *requests) RoundTrip(r *http.Request) (*http.Response, error) {
	send := func() (*http.Response, error) { return http.DefaultTransport.RoundTrip(r) }
	kind := ""
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && query.Has("partNumber"):
		kind = "part"
	case r.Method == http.MethodPost && query.Has("uploadId"):
		kind = "complete"
	case r.Method == http.MethodPost && query.Has("uploads"):
		kind = "begin"
	case r.Method == http.MethodPut:
		kind = "put"
	}
	q.mu.Lock()
	if q.count == nil {
		q.count = map[string]int{}
	}
	q.count[kind]++
	nth := q.count[kind]
	q.mu.Unlock()
	switch {
	case kind == "part" && q.part != nil:
		return q.part(nth, r, send)
	case kind == "complete" && q.whole != nil:
		return q.whole(nth, send)
	}
	return send()
}

func (q *requests) of(kind string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count[kind]
}

// inParts opens a bucket with a small part size.
func inParts(t *testing.T, server storetest.Server, bucket string, q http.RoundTripper) *s3.Store {
	t.Helper()
	s, err := s3.New(s3.Options{
		Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		Transport: q, PartSize: testPart,
	})
	require.NoError(t, err)
	require.NoError(t, s.EnsureBucket(t.Context()))
	return s
}

// raw returns a separate client that lists unfinished uploads.
func raw(t *testing.T, server storetest.Server) *minio.Core {
	t.Helper()
	creds := credentials.NewStaticV4(server.AccessKey, server.SecretKey, "")
	c, err := minio.NewCore(strings.TrimPrefix(server.Endpoint, "http://"), &minio.Options{Creds: creds})
	require.NoError(t, err)
	return c
}

func unfinished(t *testing.T, server storetest.Server, bucket string) []minio.ObjectMultipartInfo {
	t.Helper()
	list, err := raw(t, server).ListMultipartUploads(t.Context(), bucket, "", "", "", "", 100)
	require.NoError(t, err)
	return list.Uploads
}

func requireBlob(t *testing.T, s *s3.Store, want []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), blobKey)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "the object has %d other bytes, want %d", len(got), len(want))
}

func TestLargeObjectsGoInParts(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	q := &requests{}
	s := inParts(t, server, "parts", q)
	want := content(1)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 6, q.of("part"))
	require.Equal(t, 1, q.of("begin"))
	requireBlob(t, s, want)
	require.Empty(t, unfinished(t, server, "parts"))

	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 6, q.of("part"), "what is there is not sent again")

	// The server's disk lost a byte.
	file := filepath.Join(server.Folder, "parts", blobKey)
	damaged := bytes.Clone(want)
	damaged[sixParts/2] ^= 1
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(damaged[sixParts/2:sixParts/2+1], sixParts/2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	requireBlob(t, s, want)
}

const (
	killEndpoint = "ROPEWALK_TEST_UPLOAD_ENDPOINT"
	killBucket   = "killed"
	partsBefore  = 3 // stored when the process is killed
)

// TestUploadUntilKilled runs in the process that the next test kills.
func TestUploadUntilKilled(t *testing.T) {
	endpoint := os.Getenv(killEndpoint)
	if endpoint == "" {
		t.Skip("runs as a process of TestAKilledUploadGoesOn")
	}
	server := storetest.Server{
		Endpoint: endpoint, AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
	}
	var mu sync.Mutex
	stored := 0
	q := &requests{part: func(nth int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if nth > partsBefore {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		response, err := send()
		mu.Lock()
		defer mu.Unlock()
		if stored++; stored == partsBefore {
			fmt.Println("\nstored")
		}
		return response, err
	}}
	t.Error(inParts(t, server, killBucket, q).PutFrom(t.Context(), blobKey, bytes.NewReader(content(2)), sixParts))
}

func TestAKilledUploadGoesOn(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	q := &requests{}
	s := inParts(t, server, killBucket, q)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestUploadUntilKilled$", "-test.v")
	child.Env = append(os.Environ(), killEndpoint+"="+server.Endpoint,
		"AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "stored" {
	}
	require.NoError(t, lines.Err())
	require.Equal(t, "stored", lines.Text())
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait(), "it was killed")
	require.Len(t, unfinished(t, server, killBucket), 1)

	want := content(2)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Zero(t, q.of("begin"), "no upload is begun")
	require.Equal(t, 6-partsBefore, q.of("part"), "the parts that are stored are not sent again")
	requireBlob(t, s, want)
	require.Empty(t, unfinished(t, server, killBucket))
}

// An unfinished upload of the key holds parts of other content: none of them gets into the object.
func TestPartsOfOtherContentAreReplaced(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	q := &requests{}
	s := inParts(t, server, "other", q)
	core := raw(t, server)
	id, err := core.NewMultipartUpload(t.Context(), "other", blobKey, minio.PutObjectOptions{})
	require.NoError(t, err)
	want := content(3)
	for n, data := range map[int][]byte{
		1: want[:testPart],                   // as it should be
		2: content(4)[testPart : 2*testPart], // other bytes
		3: want[2*testPart : 2*testPart+99],  // cut short
		9: want[:testPart],                   // beyond the end
	} {
		body, options := bytes.NewReader(data), minio.PutObjectPartOptions{}
		_, err := core.PutObjectPart(t.Context(), "other", blobKey, id, n, body, body.Size(), options)
		require.NoError(t, err)
	}
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 5, q.of("part"))
	requireBlob(t, s, want)
}

func TestPartsDamagedOnTheWayAreSentAgain(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	q := &requests{part: func(nth int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if nth == 2 {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			body[len(body)/3] ^= 1 // within a signed piece, not on the border of two
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return send()
	}}
	s := inParts(t, server, "damaged", q)
	want := content(5)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 7, q.of("part"))
	requireBlob(t, s, want)
}

// The server has performed the request, and its answer is lost.
func TestLostAnswersOfPartsAndCompletions(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	lose := func(nth int, send func() (*http.Response, error)) (*http.Response, error) {
		response, err := send()
		if nth == 1 && err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // the server is done
			_ = response.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return response, err
	}
	q := &requests{whole: lose}
	q.part = func(nth int, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		return lose(nth, send)
	}
	s := inParts(t, server, "lost", q)
	want := content(6)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 7, q.of("part"))
	require.Equal(t, 2, q.of("complete"))
	requireBlob(t, s, want)
	require.Empty(t, unfinished(t, server, "lost"))
}

// Writers of the same object send the same parts at the same time, and one completes the upload before the others.
func TestWritersOfOneLargeObject(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	want := content(7)
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i := range errs {
		s := inParts(t, server, "writers", nil)
		wg.Go(func() { errs[i] = s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	s := inParts(t, server, "writers", nil)
	requireBlob(t, s, want)
	require.Empty(t, unfinished(t, server, "writers"), "nothing is left over")
}

// An upload that is aborted while its writer works is started again.
func TestAnAbortedUploadBeginsAgain(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	core := raw(t, server)
	var alone sync.Mutex // a part that arrives while the upload is aborted would recreate the upload
	q := &requests{part: func(nth int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		alone.Lock()
		defer alone.Unlock()
		if nth == 3 {
			id := r.URL.Query().Get("uploadId")
			if err := core.AbortMultipartUpload(r.Context(), "aborted", blobKey, id); err != nil {
				return nil, err
			}
		}
		return send()
	}}
	s := inParts(t, server, "aborted", q)
	want := content(8)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 2, q.of("begin"))
	requireBlob(t, s, want)
}

// Another writer changes a part after it was stored. The server refuses the completion, and that part is sent again.
func TestAPartThatIsChangedUnderItsWriterIsSentAgain(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	core := raw(t, server)
	q := &requests{}
	q.whole = func(nth int, send func() (*http.Response, error)) (*http.Response, error) {
		if nth == 1 {
			list, err := core.ListMultipartUploads(t.Context(), "changed", "", "", "", "", 100)
			if err != nil {
				return nil, err
			}
			other := bytes.NewReader(content(10)[:testPart])
			_, err = core.PutObjectPart(t.Context(), "changed", blobKey, list.Uploads[0].UploadID, 2, other, testPart,
				minio.PutObjectPartOptions{})
			if err != nil {
				return nil, err
			}
		}
		return send()
	}
	s := inParts(t, server, "changed", q)
	want := content(9)
	require.NoError(t, s.PutFrom(t.Context(), blobKey, bytes.NewReader(want), sixParts))
	require.Equal(t, 1, q.of("begin"))
	require.Equal(t, 7, q.of("part"))
	require.Equal(t, 2, q.of("complete"))
	requireBlob(t, s, want)
	require.Empty(t, unfinished(t, server, "changed"))
}

func TestAbortUploads(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	s := inParts(t, server, "stale", nil)
	core := raw(t, server)
	for _, key := range []string{"runs/run=a/x", "runs/run=ab/x", "runs/run=a/y"} {
		_, err := core.NewMultipartUpload(t.Context(), "stale", key, minio.PutObjectOptions{})
		require.NoError(t, err)
	}
	n, err := s.AbortUploads(t.Context(), "", time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Zero(t, n, "they are young")
	n, err = s.AbortUploads(t.Context(), "runs/run=a/", time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	left := unfinished(t, server, "stale")
	require.Len(t, left, 1)
	require.Equal(t, "runs/run=ab/x", left[0].Key)
}
