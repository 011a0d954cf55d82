package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
)

// Variables of a worker without credentials of the store. presignerToken holds the token for the presigner that
// presignerVariable names, and presignerAuthority names a PEM file with the certificates that the presigner is verified
// with, in place of the system's.
const (
	presignerVariable  = "ROPEWALK_PRESIGNER"
	presignerToken     = "ROPEWALK_PRESIGNER_TOKEN"
	presignerAuthority = "ROPEWALK_PRESIGNER_CA"
)

// checkPresigner completes the presigner's address, and refuses queues whose stages need more than a presigner permits.
func (o *workerOptions) checkPresigner() error {
	if o.presigner = cmp.Or(o.presigner, os.Getenv(presignerVariable)); o.presigner == "" {
		return nil
	}
	if !slices.Equal(o.queues, []string{stages.Sandbox}) {
		polled := "all queues"
		if len(o.queues) > 0 {
			polled = "the queue " + strings.Join(o.queues, ", ")
		}
		return badInput("--presigner, %s: a presigner permits what the stages of the queue %s need, and this worker "+
			"polls %s: name --queues %s, or give the worker the store's credentials", presignerVariable,
			stages.Sandbox, polled, stages.Sandbox)
	}
	if err := presigned.CheckAddress(o.presigner); err != nil {
		return badInput("--presigner, %s: %w", presignerVariable, err)
	}
	if os.Getenv(presignerToken) == "" {
		return badInput("--presigner %s: %s is not set", o.presigner, presignerToken)
	}
	return nil
}

// openPresigned opens the store through the presigner.
func (o workerOptions) openPresigned(ctx context.Context, requests *metrics.Requests) (store.Store, error) {
	secure, err := clientTLS(presignerAuthority)
	if err != nil {
		return nil, err
	}
	options := presigned.Options{Address: o.presigner, Token: os.Getenv(presignerToken), TLS: secure,
		Store: s3.Options{Observer: requests}}
	if err := runs.Sign(&options.Store); err != nil {
		return nil, badinput.Of(err)
	}
	return presigned.Open(ctx, options)
}
