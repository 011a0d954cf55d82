package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// Runs leave a build only for one that is current, and not while a share of the new ones begins on it.
func TestWhichBuildIsSuperseded(t *testing.T) {
	build := func(id string) *worker.WorkerDeploymentVersion {
		return &worker.WorkerDeploymentVersion{DeploymentName: "rl", BuildID: id}
	}
	for name, c := range map[string]struct {
		routing client.WorkerDeploymentRoutingConfig
		want    bool
	}{
		"none is current": {client.WorkerDeploymentRoutingConfig{}, false},
		"it is current":   {client.WorkerDeploymentRoutingConfig{CurrentVersion: build("mine")}, false},
		"another one is":  {client.WorkerDeploymentRoutingConfig{CurrentVersion: build("next")}, true},
		"another one is and a third ramps": {client.WorkerDeploymentRoutingConfig{CurrentVersion: build("next"),
			RampingVersion: build("third"), RampingVersionPercentage: 10}, true},
		"another one is and it ramps": {client.WorkerDeploymentRoutingConfig{CurrentVersion: build("next"),
			RampingVersion: build("mine"), RampingVersionPercentage: 10}, false},
		"another one is and its ramp is empty": {client.WorkerDeploymentRoutingConfig{CurrentVersion: build("next"),
			RampingVersion: build("mine")}, true},
		"only a ramp to it": {client.WorkerDeploymentRoutingConfig{RampingVersion: build("mine"),
			RampingVersionPercentage: 10}, false},
	} {
		require.Equal(t, c.want, supersedes(c.routing, "mine"), name)
	}
}
