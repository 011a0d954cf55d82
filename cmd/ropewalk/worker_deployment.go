package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// Variables of a worker's deployment. Temporal's worker controller for Kubernetes sets them.
const (
	deploymentVariable = "TEMPORAL_DEPLOYMENT_NAME"
	buildVariable      = "TEMPORAL_WORKER_BUILD_ID"
)

// lookupLimit is how long the lookup of a deployment's current build may take. It runs next to the next step, which
// does not wait for it.
const lookupLimit = 20 * time.Second

// deploymentOptions say which deployment a worker belongs to, and which build it is there. A worker of no deployment
// takes the tasks of all workflows.
type deploymentOptions struct{ name, build string }

func (o *deploymentOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.name, "deployment", "", "the Temporal worker deployment that this worker belongs to: a run stays "+
		"on its build until another one is current, and changes to it between two steps ("+
		"default: "+deploymentVariable+", else none)")
	f.StringVar(&o.build, "build-id", "", "this worker's build in the deployment (default: "+buildVariable+", else "+
		"version and digest of the program)")
}

// deploymentNames matches the names of deployments. Temporal takes no dot in them.
var deploymentNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// buildNames matches builds; versions and digests do.
var buildNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$`)

// settle reads the variables, fills in the build and checks both.
func (o *deploymentOptions) settle(code string) error {
	o.name = cmp.Or(o.name, os.Getenv(deploymentVariable))
	if o.name == "" {
		if o.build != "" {
			return badInput("--build-id: it needs --deployment or %s", deploymentVariable)
		}
		return nil
	}
	o.build = cmp.Or(o.build, os.Getenv(buildVariable), buildOf(code))
	if !deploymentNames.MatchString(o.name) {
		return badInput("--deployment, %s: must match %s, got %q", deploymentVariable, deploymentNames, o.name)
	}
	if !buildNames.MatchString(o.build) {
		return badInput("--build-id, %s: must match %s, got %q", buildVariable, buildNames, o.build)
	}
	return nil
}

// options are what a worker tells Temporal.
func (o deploymentOptions) options() worker.DeploymentOptions {
	if o.name == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{UseVersioning: true,
		Version: worker.WorkerDeploymentVersion{DeploymentName: o.name, BuildID: o.build}}
}

// superseded returns what tells whether another build of the deployment than this one is current; nil for a worker of
// no deployment.
func (o deploymentOptions) superseded(c client.Client) func(ctx context.Context) (bool, error) {
	if o.name == "" {
		return nil
	}
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, lookupLimit)
		defer cancel()
		d, err := c.WorkerDeploymentClient().GetHandle(o.name).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
		if err != nil {
			return false, fmt.Errorf("look up the deployment %s: %w", o.name, err)
		}
		return supersedes(d.Info.RoutingConfig, o.build), nil
	}
}

// supersedes reports whether new runs begin on other builds than this one. They do not while a share of them begins on
// it (Temporal's ramping version), nor while no build is current.
func supersedes(routing client.WorkerDeploymentRoutingConfig, build string) bool {
	current, ramping := routing.CurrentVersion, routing.RampingVersion
	if current == nil || current.BuildID == build {
		return false
	}
	return ramping == nil || ramping.BuildID != build || routing.RampingVersionPercentage == 0
}

// buildOf is the build of the running program: its version, and enough of its digest to tell two builds of one version
// apart.
func buildOf(code string) string {
	return programVersion() + "-" + code[:12]
}

// programVersion is the version that the program was built from.
func programVersion() string {
	info, _ := debug.ReadBuildInfo() // nil in a program that was linked without it
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
