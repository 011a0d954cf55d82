package s3

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Defaults for settings that the environment does not name.
const (
	DefaultBucket = "ropewalk"
	DefaultRegion = "us-east-1"
)

// Options say which bucket of which server to use. Printing or logging them shows no secrets.
type Options struct {
	Endpoint     string // host:port, or a URL whose scheme then decides Secure
	Region       string // DefaultRegion when empty
	Bucket       string // DefaultBucket when empty
	AccessKey    string
	SecretKey    string
	SessionToken string // for temporary credentials, else empty
	Secure       bool   // TLS
	// PartSize is the size of a large object's parts, in bytes. A larger object is uploaded in parts of this size, or
	// of a greater size if there would be too many parts. 0 means DefaultPartSize.
	PartSize int64
	// Transport replaces the HTTP transport; nil means the client library's own.
	Transport http.RoundTripper
	// Signer signs what PutIfAbsent puts; nil: nothing is signed.
	Signer Signer
	// Observer is told of every request, retries included; nil: no one is.
	Observer Observer
}

// Signer signs objects.
type Signer interface {
	// Sign returns the signature of an object and the key to put it under; "" for an object that needs none.
	Sign(key string, data []byte) (signatureKey string, signature []byte)
}

// FromEnv reads the standard AWS variables and ROPEWALK_S3_BUCKET. Without an endpoint it uses Amazon's endpoint of the
// region. Missing credentials are an error that names the variable.
func FromEnv() (Options, error) {
	region := first(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), DefaultRegion)
	o := Options{
		Endpoint: first(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3."+region+
			".amazonaws.com"),
		Region:       region,
		Bucket:       first(os.Getenv("ROPEWALK_S3_BUCKET"), DefaultBucket),
		AccessKey:    os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretKey:    os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		Secure:       true,
	}
	for _, v := range []struct{ name, value string }{{"AWS_ACCESS_KEY_ID", o.AccessKey},
		{"AWS_SECRET_ACCESS_KEY", o.SecretKey}} {
		if v.value == "" {
			return Options{}, fmt.Errorf("read S3 settings: environment variable %s is not set", v.name)
		}
	}
	return o, o.resolve()
}

// resolve fills in defaults and removes the scheme of a URL from the endpoint.
func (o *Options) resolve() error {
	o.Region = first(o.Region, DefaultRegion)
	o.Bucket = first(o.Bucket, DefaultBucket)
	if !strings.Contains(o.Endpoint, "://") {
		if o.Endpoint == "" {
			return fmt.Errorf("read S3 settings: no endpoint is set; set AWS_ENDPOINT_URL_S3 to the server's URL")
		}
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		// The error of url.Parse repeats the text, which may hold a password.
		return fmt.Errorf("read S3 settings: the endpoint is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("read S3 settings: endpoint scheme %q: want http or https", u.Scheme)
	case u.User != nil:
		return fmt.Errorf("read S3 settings: the endpoint of %s holds credentials; put them in AWS_ACCESS_KEY_ID "+
			"and AWS_SECRET_ACCESS_KEY", u.Host)
	case u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return fmt.Errorf("read S3 settings: endpoint %s://%s%s: want scheme, host and port only", u.Scheme, u.Host,
			u.Path)
	}
	o.Endpoint, o.Secure = u.Host, u.Scheme == "https"
	return nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// String names the store without secrets.
func (o Options) String() string {
	if strings.Contains(o.Endpoint, "@") { // not resolved yet, and with credentials in it
		return "s3://" + o.Bucket
	}
	scheme := "http"
	if o.Secure {
		scheme = "https"
	}
	host := strings.TrimPrefix(strings.TrimPrefix(o.Endpoint, "https://"), "http://")
	return fmt.Sprintf("s3://%s at %s://%s", o.Bucket, scheme, host)
}

// GoString keeps the secrets out of %#v.
func (o Options) GoString() string { return o.String() }

// LogValue keeps the secrets out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }
