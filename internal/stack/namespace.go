package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// namespace says what the project needs from Temporal's namespace. Preparing it is idempotent. The namespace of
// temporal.yaml is created if it does not exist. Another one is not: its name may be misspelt, and a run in a new
// namespace would miss all earlier ones.
type namespace struct {
	name string
	conf temporalconf.Config
	at   string // the server's address
	own  bool   // the server is ours: its retention may be raised
	say  func(string)
}

// prepareAt connects and prepares the namespace.
func (n namespace) prepareAt(ctx context.Context, opts client.Options) error {
	opts.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return &connectError{err}
	}
	defer c.Close()
	if err := n.ensureRetention(ctx, c.WorkflowService()); err != nil {
		return err
	}
	return n.ensureAttributes(ctx, c.OperatorService())
}

func (n namespace) ensureRetention(ctx context.Context, s workflowservice.WorkflowServiceClient) error {
	want := durationpb.New(n.conf.Retention)
	desc, err := s.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: n.name})
	if isMissing(err) && n.name != n.conf.Namespace {
		return &permanentError{badinput.Of(n.missing(ctx, s))}
	}
	if isMissing(err) {
		_, err = s.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: n.name, WorkflowExecutionRetentionPeriod: want})
		if err != nil {
			return fmt.Errorf("register namespace %s: %w", n.name, err)
		}
		return n.awaitNamespace(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", n.name, err)
	}
	have := desc.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	switch {
	case have >= n.conf.Retention:
		return nil
	case !n.own:
		n.say(fmt.Sprintf("note: namespace %s keeps closed workflows for %s only; the project's setting is %s",
			n.name, have, n.conf.Retention))
		return nil
	}
	_, err = s.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: n.name, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: want}})
	if err != nil {
		return fmt.Errorf("raise retention of namespace %s: %w", n.name, err)
	}
	return nil
}

// isMissing reports whether a server says that there is no such namespace.
func isMissing(err error) bool {
	var missing *serviceerror.NamespaceNotFound
	return errors.As(err, &missing)
}

// awaitNamespace waits until a new namespace is visible; servers cache the list for some seconds.
func (n namespace) awaitNamespace(ctx context.Context, s workflowservice.WorkflowServiceClient) error {
	for {
		_, err := s.ListOpenWorkflowExecutions(ctx,
			&workflowservice.ListOpenWorkflowExecutionsRequest{Namespace: n.name, MaximumPageSize: 1})
		if !isMissing(err) {
			return nil
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("wait for namespace %s: %w", n.name, err)
		}
	}
}

func (n namespace) ensureAttributes(ctx context.Context, s operatorservice.OperatorServiceClient) error {
	missing, err := n.missingAttributes(ctx, s)
	if err != nil || len(missing) == 0 {
		return err
	}
	_, err = s.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: n.name,
		SearchAttributes: missing})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("add search attributes to namespace %s: %w: have them created with: %s", n.name, err,
			n.advice(missing))
	}
	// The server's caches may show them only some seconds later.
	for {
		missing, err = n.missingAttributes(ctx, s)
		if err != nil || len(missing) == 0 {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("wait for search attributes of namespace %s: %w", n.name, ctx.Err())
		}
	}
}

// attributes returns the namespace's custom search attributes.
func (n namespace) attributes(ctx context.Context,
	s operatorservice.OperatorServiceClient) (map[string]enumspb.IndexedValueType, error) {
	list, err := s.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: n.name})
	if err != nil {
		return nil, fmt.Errorf("list search attributes of namespace %s: %w", n.name, err)
	}
	return list.GetCustomAttributes(), nil
}

func (n namespace) missingAttributes(ctx context.Context,
	s operatorservice.OperatorServiceClient) (map[string]enumspb.IndexedValueType, error) {
	attributes, err := n.attributes(ctx, s)
	if err != nil {
		return nil, err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, kind := range n.conf.SearchAttributes {
		want, err := enumspb.IndexedValueTypeFromString(kind)
		if err != nil {
			return nil, &permanentError{fmt.Errorf("search attribute %s: %w", name, err)}
		}
		switch have, ok := attributes[name]; {
		case !ok:
			missing[name] = want
		case have != want:
			return nil,
				&permanentError{
					fmt.Errorf("search attribute %s of namespace %s has type %s, want %s: remove it or use another "+
						"namespace", name, n.name, have, want)}
		}
	}
	return missing, nil
}

func (n namespace) advice(missing map[string]enumspb.IndexedValueType) string {
	words := []string{"temporal operator search-attribute create --namespace", n.name}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, "--name", name, "--type", missing[name].String())
	}
	return strings.Join(words, " ")
}
