package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/minio/minio-go/v7"

	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/store"
)

// response returns the server's response if err holds one.
func response(err error) (minio.ErrorResponse, bool) {
	var r minio.ErrorResponse
	return r, errors.As(err, &r)
}

// exists reports whether err says that a conditional put found the key taken.
func exists(err error) bool {
	r, ok := response(err)
	return ok && (r.StatusCode == http.StatusPreconditionFailed || r.Code == minio.PreconditionFailed)
}

// retryable reports whether a retry may help: after an error of the network or of an overloaded server, or after a
// conditional put that conflicted with another one (409), which S3 asks the client to repeat.
func retryable(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := foreign(err); ok {
		return false
	}
	r, ok := response(err)
	if !ok {
		return unreachable(err)
	}
	switch r.StatusCode {
	case http.StatusConflict:
		return r.Code != "BucketAlreadyExists" && r.Code != "BucketAlreadyOwnedByYou"
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusInsufficientStorage:
		return false
	}
	switch r.Code {
	case "SlowDown", "InternalError", "RequestTimeout", "ServiceUnavailable", "OperationAborted",
		"ConditionalRequestConflict":
		return true
	}
	return r.StatusCode >= http.StatusInternalServerError
}

// unreachable reports whether err is an error of the connection rather than of the server.
func unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var link *url.Error
	return errors.As(err, &op) || errors.As(err, &dns) || errors.As(err, &link) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

const (
	unknownKey   = "the server does not know this access key; check AWS_ACCESS_KEY_ID"
	quotaReached = "free space or raise the quota; nothing that was committed is lost"
)

// advice says what to do about each error code that does not go away unless someone acts.
var advice = map[string]struct {
	sentinel error
	text     string
}{
	minio.NoSuchKey: {store.ErrNotFound, ""},
	"NoSuchBucket":  {store.ErrNoBucket, "create it, or name another in ROPEWALK_S3_BUCKET"},
	"AccessDenied": {store.ErrCredentials,
		"this access key lacks permission; ask for read, write and list rights on the bucket"},
	"InvalidAccessKeyId": {store.ErrCredentials, unknownKey},
	"XAdminUserNotFound": {store.ErrCredentials, unknownKey},
	"SignatureDoesNotMatch": {store.ErrCredentials,
		"the secret does not belong to the access key; check AWS_SECRET_ACCESS_KEY"},
	"ExpiredToken": {store.ErrCredentials, "the temporary credentials have expired; get new ones"},
	"InvalidToken": {store.ErrCredentials, "check AWS_SESSION_TOKEN"},
	"RequestTimeTooSkewed": {store.ErrCredentials,
		"this machine's clock differs from the server's; set it right"},
	"AuthorizationHeaderMalformed": {store.ErrCredentials, "the server expects another region; check AWS_REGION"},
	"EntityTooLarge": {store.ErrTooLarge,
		"the server accepts no object of that size; use another server"},
	"QuotaExceeded": {store.ErrNoSpace, quotaReached},
	"XMinioStorageFull": {store.ErrNoSpace,
		"free space on the server; nothing that was committed is lost"},
	"XMinioAdminBucketQuotaExceeded": {store.ErrNoSpace, quotaReached},
}

// translate maps an error of the client library to the package's sentinels, with advice.
func (s *Store) translate(op, key string, err error) error {
	what := fmt.Sprintf("%s %s/%s", op, s.options, key)
	if key == "" {
		what = fmt.Sprintf("%s %s", op, s.options)
	}
	if f, ok := foreign(err); ok {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnreachable, f)
	}
	r, ok := response(err)
	if !ok {
		if unreachable(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s: %w: %w; check that the server is running and that AWS_ENDPOINT_URL_S3 is right",
				what, store.ErrUnreachable, cause.Of(err))
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	if r.StatusCode == http.StatusInsufficientStorage {
		r.Code = "XMinioStorageFull"
	}
	a, known := advice[r.Code]
	switch {
	case known && a.text == "":
		return fmt.Errorf("%s: %w", what, a.sentinel)
	case known:
		return fmt.Errorf("%s: %w (%s): %s", what, a.sentinel, r.Code, a.text)
	case exists(err):
		return fmt.Errorf("%s: %w", what, store.ErrExists)
	}
	return fmt.Errorf("%s: refused with %d %s: %w", what, r.StatusCode, r.Code, err)
}
