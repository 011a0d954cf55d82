package stack

import (
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// Addresses says where the servers of a joined stack are. Fields for servers that the lease does not need may be empty.
type Addresses struct {
	Temporal  string `json:"temporal"` // host:port of the frontend
	Namespace string `json:"namespace"`
	UI        string `json:"ui"` // base URL; empty for an existing Temporal
	// S3Endpoint is a URL with its scheme.
	S3Endpoint string `json:"s3_endpoint"`
	S3Bucket   string `json:"s3_bucket"`
	Region     string `json:"region"`
	AccessKey  string `json:"access_key"`
	SecretKey  string `json:"secret_key"` // never logged
	// S3Folder is the plain folder behind a local S3 server, which any tool may read; else empty.
	S3Folder string `json:"s3_folder"`
	Logs     string `json:"logs"` // folder of the servers' log files
}

// LogValue leaves the secret out of logs.
func (a Addresses) LogValue() slog.Value {
	return slog.GroupValue(slog.String("temporal", a.Temporal), slog.String("namespace", a.Namespace),
		slog.String("ui", a.UI), slog.String("s3", a.S3Endpoint), slog.String("bucket", a.S3Bucket))
}

// String leaves the secret out of messages.
func (a Addresses) String() string {
	return fmt.Sprintf("Temporal %s (namespace %s, UI %s), S3 %s (bucket %s)", a.Temporal, a.Namespace, a.UI,
		a.S3Endpoint, a.S3Bucket)
}

// GoString keeps the secret out of %#v as well.
func (a Addresses) GoString() string { return a.String() }

// uiVariable holds the address of a local stack's web UI. No other environment has it.
const uiVariable = "ROPEWALK_UI"

// Env returns the environment, as KEY=VALUE, that makes the official client configurations (and
// so a worker, the temporal command, an AWS client) use this stack.
func (a Addresses) Env() []string {
	var env []string
	add := func(key, value string) {
		if value != "" {
			env = append(env, key+"="+value)
		}
	}
	add("TEMPORAL_ADDRESS", a.Temporal)
	add("TEMPORAL_NAMESPACE", a.Namespace)
	if a.UI != "" { // ours: what the user set for another server does not apply
		env = append(env, "TEMPORAL_TLS=false", "TEMPORAL_API_KEY=")
	}
	add("AWS_ENDPOINT_URL_S3", a.S3Endpoint)
	add("AWS_ACCESS_KEY_ID", a.AccessKey)
	add("AWS_SECRET_ACCESS_KEY", a.SecretKey)
	if a.S3Folder != "" {
		env = append(env, "AWS_SESSION_TOKEN=")
	}
	add("AWS_REGION", a.Region)
	add("ROPEWALK_S3_BUCKET", a.S3Bucket)
	add(uiVariable, a.UI)
	return env
}

// ClientOptions returns options for a Temporal client of this stack. An existing server gets Temporal's own client
// configuration (TLS, API key, codec); the local server gets none of it.
func (a Addresses) ClientOptions() (client.Options, error) {
	if a.UI != "" {
		return client.Options{HostPort: a.Temporal, Namespace: a.Namespace}, nil
	}
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{})
	if err != nil {
		return opts, fmt.Errorf("load Temporal's client configuration: %w", err)
	}
	opts.HostPort, opts.Namespace = a.Temporal, a.Namespace
	return opts, nil
}
