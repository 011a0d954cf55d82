package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

const chart = "helm/ropewalk"

// built returns the path of a program that tools/build.sh has built, or of one on PATH.
func built(t *testing.T, program, what string) string {
	t.Helper()
	if built, err := filepath.Abs("../.tools/" + program); err == nil {
		if _, err := os.Stat(built); err == nil {
			return built
		}
	}
	return find(t, program, what)
}

func helm(t *testing.T) string {
	t.Helper()
	return built(t, "helm", "HELM")
}

// matrix are the values that the chart is rendered with, as --set takes them.
var matrix = map[string][]string{
	"default": nil,
	"everything": {"temporal.apiKeySecret=key", "temporal.tlsSecret=temporal-tls", "gpu.devices=8", "gpu.hosts=true",
		"gpu.updateDevices=4", "queues.gpu.scale.enabled=true",
		"queues.cpu.scale.enabled=true", "queues.rollout.scale.enabled=true", "queues.sandbox.scale.enabled=true",
		"metrics.operator=true",
		"metrics.labels.release=prometheus", "image.pullSecrets={registry}", "sandbox.runtimeClassName=kata",
		"sandbox.clientsSecret=clients", "gpu.tlsSecret=host-tls",
		"sandbox.nodeSelector.pool=sandbox", "sandbox.tolerations[0].key=sandbox",
		"sandbox.tolerations[0].operator=Exists",
		"gpu.nodeSelector.pool=gpu", "workerFlags={--threads=4}", "serviceAccount.annotations.team=rl",
		"monitor.annotations.team=watch"},
	"little": {"monitor.enabled=false", "networkPolicy.enabled=false", "disruptionBudget.enabled=false",
		"queues.gpu.replicas=0", "sandbox.replicas=1"},
	"autoscaled": {"queues.rollout.scale.enabled=true", "temporal.apiKeySecret=key"},
	"devices":    {"gpu.devices=1"},
	"operator":   {"metrics.operator=true", "networkPolicy.enabled=false", "sandbox.minTier=landlock"},
}

// render renders the chart; it returns the manifests, or Helm's message.
func render(t *testing.T, settings []string) ([]map[string]any, error) {
	t.Helper()
	args := []string{"template", "trial", chart, "--namespace", "rl", "--kube-version", "1.33.3"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	out, err := run(t, args...)
	if err != nil {
		return nil, err
	}
	var manifests []map[string]any
	for decoder := yaml.NewDecoder(strings.NewReader(out)); ; {
		var m map[string]any
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return manifests, nil
		}
		require.NoError(t, err, out)
		if m != nil {
			manifests = append(manifests, m)
		}
	}
}

// run runs Helm, which must not look for a cluster or a configuration.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(helm(t), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home,
		"HELM_DATA_HOME="+home, "KUBECONFIG=/dev/null")
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, messages.String(), out.String())
	}
	return out.String(), nil
}

func TestHelmLints(t *testing.T) {
	_, err := run(t, "lint", "--strict", "--kube-version", "1.33.3", chart)
	require.NoError(t, err)
}

// Every manifest of every rendering is one that Kubernetes, KEDA and the Prometheus operator accept: no unknown field,
// no wrong type, nothing missing.
func TestManifestsAreValid(t *testing.T) {
	helm(t)
	s := newSchemas(t)
	kinds := map[string]bool{}
	for name, settings := range matrix {
		manifests, err := render(t, settings)
		require.NoError(t, err, name)
		seen := map[string]bool{}
		for _, m := range manifests {
			require.NoError(t, s.check(t, m), name)
			kinds[fmt.Sprint(m["kind"])] = true
			id := fmt.Sprint(m["kind"], at(m, "metadata", "name"))
			require.False(t, seen[id], "%s: %s is there twice", name, id)
			seen[id] = true
		}
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "Service", "NetworkPolicy", "PodDisruptionBudget",
		"ScaledObject", "TriggerAuthentication", "ServiceMonitor", "PodMonitor", "ServiceAccount"} {
		require.True(t, kinds[kind], "no rendering has a %s", kind)
	}
	for _, wrong := range []string{"replica", "replicas"} { // an unknown field, a wrong type
		m := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x"},
			"spec": map[string]any{wrong: "two", "selector": map[string]any{}, "template": map[string]any{}}}
		require.Error(t, s.check(t, m), "it would be noticed")
	}
}

// at follows keys into a manifest; nil if one is missing.
func at(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// pods returns the pod templates of a rendering, by the name of what runs them.
func pods(t *testing.T, settings ...string) map[string]map[string]any {
	t.Helper()
	manifests, err := render(t, settings)
	require.NoError(t, err)
	out := map[string]map[string]any{}
	for _, m := range manifests {
		if spec, ok := at(m, "spec", "template", "spec").(map[string]any); ok {
			out[fmt.Sprint(at(m, "metadata", "name"))] = spec
		}
	}
	return out
}

// There is a worker for each queue of temporal.yaml, and no other.
func TestChartHasTheQueues(t *testing.T) {
	conf, err := temporalconf.Default()
	require.NoError(t, err)
	var want []string
	for _, q := range conf.Queues.All() {
		want = append(want, "trial-ropewalk-worker-"+q.Name)
	}
	var got []string
	for name := range pods(t) {
		if strings.Contains(name, "-worker-") {
			got = append(got, name)
		}
	}
	require.ElementsMatch(t, want, got)
}

// No pod is root, can gain privileges, has a capability or the cluster's credentials, or writes to its image. Sandbox
// nodes know neither the store nor Temporal.
func TestPodsAreConfined(t *testing.T) {
	for _, settings := range matrix {
		for name, spec := range pods(t, settings...) {
			require.Equal(t, false, spec["automountServiceAccountToken"], name)
			require.Equal(t, true, at(spec, "securityContext", "runAsNonRoot"), name)
			profile := at(spec, "securityContext", "seccompProfile", "type")
			require.Contains(t, []any{"RuntimeDefault", "Localhost"}, profile, name)
			for _, c := range spec["containers"].([]any) {
				require.Equal(t, map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
					"capabilities": map[string]any{"drop": []any{"ALL"}}}, at(c, "securityContext"), name)
				require.NotNil(t, at(c, "resources", "limits", "memory"), name)
				if name == "trial-ropewalk-sandbox" {
					require.Nil(t, at(c, "env"), "%s: it needs no variable", name)
				}
			}
		}
	}
	manifests, err := render(t, nil)
	require.NoError(t, err)
	i := slices.IndexFunc(manifests, func(m map[string]any) bool {
		return m["kind"] == "NetworkPolicy" && at(m, "metadata", "name") == "trial-ropewalk-sandbox"
	})
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, []any{"Ingress", "Egress"}, at(manifests[i], "spec", "policyTypes"))
	require.Empty(t, at(manifests[i], "spec", "egress"), "nothing goes out")
	for _, m := range manifests {
		require.NotEqual(t, "Secret", m["kind"], "secrets are named, not made")
	}
}

// Workers and the monitor, which only reads, have accounts of their own, so that a cloud gives each its own role.
func TestAccountsOfTheChart(t *testing.T) {
	manifests, err := render(t, []string{"serviceAccount.annotations.role=writes", "monitor.annotations.role=reads"})
	require.NoError(t, err)
	accounts := map[any]any{}
	for _, m := range manifests {
		if m["kind"] == "ServiceAccount" {
			accounts[at(m, "metadata", "name")] = at(m, "metadata", "annotations", "role")
		}
	}
	require.Equal(t, map[any]any{"trial-ropewalk-worker": "writes", "trial-ropewalk-monitor": "reads"}, accounts)
	for name, spec := range pods(t, "gpu.hosts=true") {
		switch account := spec["serviceAccountName"]; name {
		case "trial-ropewalk-sandbox":
			require.Nil(t, account, "sandbox nodes have no role")
		case "trial-ropewalk-monitor":
			require.Equal(t, "trial-ropewalk-monitor", account)
		default:
			require.Equal(t, "trial-ropewalk-worker", account, name)
		}
	}
}

// The monitor has the keys of an account of its own, and images are taken by digest where one is named.
func TestKeysAndDigestsOfTheChart(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, spec := range pods(t, "image.registry=team.example", "image.tag=v1", "image.digests.worker="+digest) {
		container := spec["containers"].([]any)[0]
		variables := fmt.Sprint(at(container, "env"))
		own := strings.Contains(variables, "name:ropewalk-store-reader")
		require.Equal(t, name == "trial-ropewalk-monitor", own, name)
		other := strings.Contains(variables, "name:ropewalk-store]")
		require.Equal(t, strings.Contains(name, "-worker-"), other, name)
		image := at(container, "image")
		switch name {
		case "trial-ropewalk-sandbox":
			require.Equal(t, "team.example/ropewalk-sandbox:v1", image)
		case "trial-ropewalk-worker-gpu":
			require.Equal(t, "team.example/ropewalk-gpu:v1", image)
		default:
			require.Equal(t, "team.example/ropewalk-worker@"+digest, image, name)
		}
	}
}

// policyOf returns what a rendering's NetworkPolicy of a name lets in.
func policyOf(t *testing.T, name string, settings []string) []any {
	t.Helper()
	manifests, err := render(t, settings)
	require.NoError(t, err)
	i := slices.IndexFunc(manifests, func(m map[string]any) bool {
		return m["kind"] == "NetworkPolicy" && at(m, "metadata", "name") == name
	})
	require.GreaterOrEqual(t, i, 0, name)
	return at(manifests[i], "spec", "ingress").([]any)
}

// Hosts that share a model get their certificate from a secret, and others reach their metrics alone.
func TestHostsOfTheChart(t *testing.T) {
	const worker = "trial-ropewalk-worker-gpu"
	for name, spec := range pods(t, "gpu.hosts=true", "gpu.tlsSecret=host-tls") {
		mounted := fmt.Sprint(spec["volumes"])
		require.Equal(t, name == worker, strings.Contains(mounted, "secretName:host-tls"), name)
		variables := fmt.Sprint(at(spec["containers"].([]any)[0], "env"))
		for _, file := range []string{"CERT value:/etc/ropewalk/host/tls.crt", "KEY value:/etc/ropewalk/host/tls.key",
			"CA value:/etc/ropewalk/host/ca.crt"} {
			require.Equal(t, name == worker, strings.Contains(variables, "ROPEWALK_HOST_TLS_"+file), name)
		}
	}
	plain := []string{"gpu.hosts=true"}
	require.NotContains(t, fmt.Sprint(pods(t, plain...)[worker]), "ROPEWALK_HOST_TLS")
	ingress := policyOf(t, worker, plain)
	require.Len(t, ingress, 2)
	require.Equal(t, "gpu", at(ingress[0].(map[string]any)["from"].([]any)[0], "podSelector", "matchLabels",
		"ropewalk/queue"))
	require.Nil(t, at(ingress[0], "ports"))
	require.Equal(t, []any{map[string]any{"protocol": "TCP", "port": 9463}}, at(ingress[1], "ports"))
}

// With Prometheus' operator there is a monitor for every component: for each that serves metrics on a port of its own,
// and for sandbox nodes, which serve them where they take calls.
func TestChartIsMonitored(t *testing.T) {
	manifests, err := render(t, []string{"metrics.operator=true"})
	require.NoError(t, err)
	const component = "app.kubernetes.io/component"
	want, got := []any{"sandbox"}, []any{}
	for _, m := range manifests {
		switch m["kind"] {
		case "PodMonitor", "ServiceMonitor":
			got = append(got, at(m, "spec", "selector", "matchLabels", component))
		case "Deployment", "StatefulSet":
			container := at(m, "spec", "template", "spec", "containers").([]any)[0]
			named := func(port any) bool { return at(port, "name") == "metrics" }
			is := at(m, "spec", "template", "metadata", "labels", component)
			if slices.ContainsFunc(at(container, "ports").([]any), named) && !slices.Contains(want, is) {
				want = append(want, is)
			}
		}
	}
	require.ElementsMatch(t, []any{"worker", "monitor", "sandbox"}, want)
	require.ElementsMatch(t, want, got)
}

// Values that cannot work are refused when the chart is rendered, by name.
func TestChartRefuses(t *testing.T) {
	for setting, want := range map[string]string{
		"queues.cpus.replicas=1":         "cpus",
		"temporal.address=https://x":     "address",
		"store.endpoint=s3.example":      "endpoint",
		"store.credentialsSecret=":       "credentialsSecret",
		"monitor.credentialsSecret=":     "credentialsSecret",
		"image.digests.gpu=sha256:0a":    "gpu",
		"sandbox.minTier=none":           "minTier",
		"queues.gpu.resources.memory=16": "memory",
		"sandbox.replicas=0":             "replicas",
	} {
		_, err := render(t, []string{setting})
		require.ErrorContains(t, err, want, setting)
		require.ErrorContains(t, err, "values don't meet the specifications of the schema", setting)
	}
}
