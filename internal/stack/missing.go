package stack

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// connectError says that Temporal's server has not answered.
type connectError struct{ cause error }

// Error implements error.
func (e *connectError) Error() string { return "connect: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *connectError) Unwrap() error { return e.cause }

// unanswered says why a Temporal server of the user does not answer, and what to do. It tries the plain connection,
// whose errors say more than those of gRPC.
func unanswered(ctx context.Context, address string, cause error) error {
	const remedy = "start it, correct TEMPORAL_ADDRESS or temporal.toml, or unset the variable to use a local server"
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("the address of the Temporal server is %q, it must be HOST:PORT: correct TEMPORAL_ADDRESS "+
			"or temporal.toml", address)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("the Temporal server at %s cannot be reached: %w: %s", address, err, remedy)
	}
	_ = conn.Close() // it was opened for its error only
	return fmt.Errorf("what listens at %s does not answer as a Temporal server: %w: check the address and "+
		"TEMPORAL_TLS and TEMPORAL_API_KEY, which must fit the server", address, cause)
}

// missingNamespaceError says that the server has no namespace of the name that the environment selects.
type missingNamespaceError struct {
	name, at string
	own      bool     // the server is ours
	known    []string // nil if the server does not tell
	conf     temporalconf.Config
}

// Error implements error.
func (e *missingNamespaceError) Error() string {
	text := fmt.Sprintf("the Temporal server at %s has no namespace %s, which TEMPORAL_NAMESPACE or temporal.toml "+
		"selects", e.at, e.name)
	if near := spelling.Nearest(e.name, e.known); near != "" {
		text += "; did you mean " + near + "?"
	}
	if len(e.known) > 0 {
		text += "\nits namespaces are " + strings.Join(e.known, ", ")
	}
	if e.own {
		return text + "\nunset TEMPORAL_NAMESPACE to use " + e.conf.Namespace + ", the local stack's own"
	}
	return text + fmt.Sprintf("\nto create it: temporal operator namespace create --address %s --namespace %s "+
		"--retention %s", e.at, e.name, e.conf.Retention)
}

// missing lists the namespaces that the server has. Some servers do not list them to everyone.
func (n namespace) missing(ctx context.Context, s workflowservice.WorkflowServiceClient) error {
	e := &missingNamespaceError{name: n.name, at: n.at, own: n.own, conf: n.conf}
	list, err := s.ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{PageSize: 50})
	if err != nil {
		return e // its absence is the news
	}
	for _, d := range list.GetNamespaces() {
		if name := d.GetNamespaceInfo().GetName(); name != "temporal-system" {
			e.known = append(e.known, name)
		}
	}
	slices.Sort(e.known)
	return e
}

// Unanswered says why the Temporal server that a worker's environment selects does not answer, and what to do.
func Unanswered(ctx context.Context, address string, cause error) error {
	return badinput.Of(unanswered(ctx, address, cause))
}

// CheckNamespace returns an error if the server lacks the namespace that a worker is to poll. It creates none.
func CheckNamespace(ctx context.Context, c client.Client, options client.Options, conf temporalconf.Config) error {
	name := options.Namespace
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if isMissing(err) {
		return badinput.Of(namespace{name: name, conf: conf, at: options.HostPort}.missing(ctx, c.WorkflowService()))
	}
	return nil // a server may refuse to describe it and yet let workers poll
}
