package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/contrib/envconfig"
)

// DefaultBucket is the bucket of the record unless ROPEWALK_S3_BUCKET names another.
const DefaultBucket = "ropewalk"

const defaultRegion = "us-east-1"

// existing holds the servers that the environment selects; the fields of those it does not are empty.
type existing struct {
	temporal, namespace string
	s3, access, secret  string
}

// findExisting reads Temporal's client configuration (TEMPORAL_* variables, temporal.toml) and the
// AWS_* variables. Credentials without an endpoint select nothing: they may be there for other uses.
func findExisting() (existing, error) {
	var e existing
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return e, fmt.Errorf("load Temporal's client configuration: %w", err)
	}
	e.temporal, e.namespace = profile.Address, profile.Namespace
	e.s3 = firstEnv("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	if e.s3 == "" {
		return e, nil
	}
	e.access, e.secret = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if e.access == "" || e.secret == "" {
		return e, errors.New("an S3 endpoint is set without credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or unset AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL to have a local server")
	}
	if !strings.Contains(e.s3, "://") {
		return e, fmt.Errorf("the S3 endpoint %q is no URL: write it as http://host:port or https://host", e.s3)
	}
	return e, nil
}

func firstEnv(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

func bucketName() string {
	if b := os.Getenv("ROPEWALK_S3_BUCKET"); b != "" {
		return b
	}
	return DefaultBucket
}

// LocalBucket returns the plain folder of the record's bucket on the local S3 server, which need not
// run nor be there yet; ok is false where the environment selects another server.
func LocalBucket() (folder string, ok bool, err error) {
	e, err := findExisting()
	if err != nil || e.s3 != "" {
		return "", false, err
	}
	o, err := Options{}.withDefaults()
	if err != nil {
		return "", false, err
	}
	return filepath.Join(layout{o.Root}.s3(), bucketName()), true, nil
}

func regionName() string {
	if r := firstEnv("AWS_REGION", "AWS_DEFAULT_REGION"); r != "" {
		return r
	}
	return defaultRegion
}

// addresses returns what is known before anything is started.
func (e existing) addresses(o Options) Addresses {
	a := Addresses{Temporal: e.temporal, Namespace: e.namespace, Logs: layout{o.Root}.logs(),
		S3Endpoint: e.s3, AccessKey: e.access, SecretKey: e.secret, S3Bucket: bucketName(), Region: regionName()}
	if a.Namespace == "" {
		a.Namespace = o.Temporal.Namespace
	}
	return a
}

// request asks a supervisor for what the options need.
func (e existing) request(o Options) request {
	a := e.addresses(o)
	return request{Op: "join", Need: o.Need, Temporal: e.temporal, S3: e.s3, Namespace: a.Namespace, Bucket: a.S3Bucket}
}

// check asks the existing servers that are needed whether they answer, and prepares Temporal's namespace.
func (e existing) check(ctx context.Context, o Options, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if o.Need.Temporal && e.temporal != "" {
		if err := e.checkTemporal(ctx, o, say); err != nil {
			return err
		}
	}
	if o.Need.S3 && e.s3 != "" {
		return e.checkS3(ctx)
	}
	return nil
}

func (e existing) checkTemporal(ctx context.Context, o Options, say func(string)) error {
	opts, err := e.addresses(o).ClientOptions()
	if err != nil {
		return err
	}
	n := namespace{name: opts.Namespace, conf: *o.Temporal, say: say}
	if err := n.prepareAt(ctx, opts); err != nil {
		return fmt.Errorf("use the Temporal server at %s that TEMPORAL_ADDRESS or temporal.toml selects: %w", e.temporal, err)
	}
	return nil
}

// checkS3 accepts any HTTP answer; the store itself finds wrong credentials and missing buckets.
func (e existing) checkS3(ctx context.Context) error {
	if err := httpAnswer(ctx, e.s3); err != nil {
		return fmt.Errorf("use the S3 server at %s that AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL selects: %w: start it, or unset the variable to have a local one", e.s3, err)
	}
	return nil
}

// httpAnswer succeeds if anything but a server error answers at the URL.
func httpAnswer(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}
	resp, err := transport.RoundTrip(req) // no redirects: the first answer is the proof
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return fmt.Errorf("get %s: %s", url, resp.Status)
	}
	return nil
}
