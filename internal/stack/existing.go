package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// DefaultBucket is the record's bucket unless ROPEWALK_S3_BUCKET names another.
const DefaultBucket = "ropewalk"

// existing holds the servers that the environment selects. The fields of servers that it does not select are empty.
type existing struct {
	temporal, namespace string
	s3, access, secret  string
}

// findExisting reads Temporal's client configuration (TEMPORAL_* variables, temporal.toml) and the AWS_* variables.
// Credentials without an endpoint select nothing: they may be set for other purposes.
func findExisting() (existing, error) {
	var e existing
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return e, badinput.Errorf("load Temporal's client configuration: %w", err)
	}
	e.temporal, e.namespace = profile.Address, profile.Namespace
	e.s3 = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if e.s3 == "" {
		return e, nil
	}
	e.access, e.secret = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if e.access == "" || e.secret == "" {
		return e,
			badinput.Errorf("an S3 endpoint is set without credentials: set AWS_ACCESS_KEY_ID and " +
				"AWS_SECRET_ACCESS_KEY, or unset AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL to use a local server")
	}
	if !strings.HasPrefix(e.s3, "http://") && !strings.HasPrefix(e.s3, "https://") {
		return e, badinput.Errorf("the S3 endpoint %q is not a URL: write it as http://host:port or https://host", e.s3)
	}
	return e, nil
}

func bucketName() string { return cmp.Or(os.Getenv("ROPEWALK_S3_BUCKET"), DefaultBucket) }

// LocalBucket returns the plain folder of the record's bucket on the local S3 server. The server need not run, and the
// folder need not exist. ok is false if the environment selects another server.
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

// ExistingS3 returns the address of a bucket on the S3 server that the environment selects. If the environment selects
// none, it is an error.
func ExistingS3(bucket string) (Addresses, error) {
	e, err := findExisting()
	if err != nil {
		return Addresses{}, err
	}
	if e.s3 == "" {
		return Addresses{}, errors.New("no S3 server is selected: set AWS_ENDPOINT_URL (https://s3.amazonaws.com for " +
			"Amazon's), AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return Addresses{S3Endpoint: e.s3, AccessKey: e.access, SecretKey: e.secret, S3Bucket: bucket,
		Region: regionName()}, nil
}

func regionName() string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

// addresses returns the addresses that are known before anything is started.
func (e existing) addresses(o Options) Addresses {
	return Addresses{Temporal: e.temporal, Namespace: cmp.Or(e.namespace, o.Temporal.Namespace),
		Logs: layout{o.Root}.logs(), S3Endpoint: e.s3, AccessKey: e.access, SecretKey: e.secret,
		S3Bucket: bucketName(), Region: regionName()}
}

// missing returns the servers that are needed and not selected, in the order in which they are started.
func (e existing) missing(n Need) (servers []string) {
	if n.Temporal && e.temporal == "" {
		servers = append(servers, temporalName)
	}
	if n.S3 && e.s3 == "" {
		servers = append(servers, s3Name)
	}
	if n.Worker {
		servers = append(servers, workerName)
	}
	return servers
}

// check checks that the existing servers that are needed answer, and prepares Temporal's namespace.
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
	n := namespace{name: opts.Namespace, conf: *o.Temporal, at: e.temporal, say: say}
	err = n.prepareAt(ctx, opts)
	for range 2 { // a server under load may be slow once
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
		err = n.prepareAt(ctx, opts)
	}
	var missing *missingNamespaceError
	var connect *connectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return badinput.Of(missing)
	case errors.As(err, &connect):
		return badinput.Of(unanswered(ctx, e.temporal, connect))
	}
	return fmt.Errorf("use the Temporal server at %s that TEMPORAL_ADDRESS or temporal.toml selects: %w",
		e.temporal, err)
}

// checkS3 accepts any HTTP answer. The store itself reports wrong credentials and missing buckets.
func (e existing) checkS3(ctx context.Context) error {
	if err := httpAnswer(ctx, e.s3); err != nil {
		return badinput.Errorf(
			"use the S3 server at %s that AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL selects: %w: start it, "+
				"or unset the variable to use a local one", e.s3, err)
	}
	return nil
}

// httpAnswer succeeds if the URL returns any answer other than a server error.
func httpAnswer(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}
	resp, err := transport.RoundTrip(req) // no redirects: the first answer is enough
	if err != nil {
		return err // it names the address
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return errors.New(resp.Status)
	}
	return nil
}
