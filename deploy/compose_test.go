package deploy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

const composeModule = "github.com/compose-spec/compose-go/v2@v2.9.0"

// composed reads compose.yaml, with anchors and merges resolved and variables as they are.
func composed(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file
}

// compose.yaml is what the Compose specification's own schema allows.
func TestComposeFileIsValid(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	location := filepath.Join(moduleFolder(t, composeModule), "schema/compose-spec.json")
	schema, err := compiler.Compile(location)
	require.NoError(t, err)
	file := composed(t)
	require.NoError(t, schema.Validate(asJSON(t, file)))
	file["services"].(map[string]any)["s3"].(map[string]any)["comand"] = []any{"x"}
	require.Error(t, schema.Validate(asJSON(t, file)), "a misspelt field would be noticed")
}

// There is a worker for each queue; what runs here is confined, and no port is open to other machines. Sandbox nodes
// have no credentials and no way out.
func TestComposeServices(t *testing.T) {
	services := composed(t)["services"].(map[string]any)
	conf, err := temporalconf.Default()
	require.NoError(t, err)
	for _, q := range conf.Queues.All() {
		require.Equal(t, []any{"worker", "--queues", q.Name, "--sandbox-address", "https://sandbox:8290"},
			at(services["worker-"+q.Name], "command"))
	}
	for name, service := range services {
		image, _ := at(service, "image").(string)
		if strings.Contains(image, "WORKER_IMAGE") || strings.Contains(image, "SANDBOX_IMAGE") {
			require.Equal(t, []any{"ALL"}, at(service, "cap_drop"), name)
			require.Equal(t, true, at(service, "read_only"), name)
			require.Contains(t, at(service, "security_opt"), "no-new-privileges", name)
		}
		ports, _ := at(service, "ports").([]any)
		for _, port := range ports {
			require.True(t, strings.HasPrefix(port.(string), "127.0.0.1:"), "%s: %s", name, port)
		}
		files, _ := at(service, "volumes").([]any)
		for _, file := range files {
			if from, _, _ := strings.Cut(file.(string), ":"); strings.HasPrefix(from, "./") {
				require.True(t, exists(from), "%s: there is no %s", name, from)
			}
		}
	}
	require.Nil(t, at(services["sandbox"], "environment"))
	require.Equal(t, []any{"sandbox"}, at(services["sandbox"], "networks"))
	require.Equal(t, true, at(composed(t), "networks", "sandbox", "internal"))
}

// Every variable of compose.yaml has a value, or compose.sh sets it.
func TestComposeVariables(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	require.NoError(t, err)
	script, err := os.ReadFile("compose.sh")
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile(`\$\{([A-Z0-9_]+)(:-)?`).FindAllStringSubmatch(string(text), -1) {
		if m[2] == "" && !slices.Contains(found, m[1]) {
			found = append(found, m[1])
			require.Regexp(t, `(?m)(^|\s)`+m[1]+`(=|;| )`, string(script), m[1])
		}
	}
	require.GreaterOrEqual(t, len(found), 5)
}

// Each service gets the secrets that it needs. The root account of S3 is for the server and for what sets it up.
func TestComposeSecrets(t *testing.T) {
	root, postgres := []string{"S3_ACCESS_KEY", "S3_SECRET_KEY"}, []string{"POSTGRES_PASSWORD"}
	want := map[string][]string{"s3": append(root, "/s3"), "setup-store": append(root, "/policy.json"),
		"postgres": postgres, "temporal": postgres, "monitor": {"READER_SECRET_KEY"}, "grafana": {"GRAFANA_PASSWORD"},
		"sandbox": {"/tls.crt", "/tls.key", "/token"}, "prometheus": {"/targets"}}
	variable := regexp.MustCompile(`\$\{([A-Z0-9_]+(?:_KEY|_PASSWORD|_TOKEN))\b|\$\{SECRETS[^}]*\}(/[a-z0-9.]+)`)
	for name, service := range composed(t)["services"].(map[string]any) {
		if strings.HasPrefix(name, "worker-") {
			want[name] = []string{"WORKER_SECRET_KEY", "SANDBOX_TOKEN", "/ca.crt"}
		}
		var got []string
		for _, m := range variable.FindAllStringSubmatch(fmt.Sprint(service), -1) {
			got = append(got, m[1]+m[2])
		}
		require.ElementsMatch(t, want[name], got, name)
	}
}

// The accounts and the policy that compose.sh writes give workers, people and the monitor what their roles may do on a
// real server, and no account is the server's owner.
func TestComposeAccounts(t *testing.T) {
	find(t, "openssl", "OPENSSL")
	state := t.TempDir()
	script := func(args ...string) string {
		cmd := exec.Command("./compose.sh", args...)
		cmd.Env = append(os.Environ(), "COMPOSE=true", "STATE="+state)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	first := script("env")
	require.Equal(t, first, script("env"), "secrets are made once")
	var users struct {
		AccessAccounts map[string]struct{ Access, Secret, Role string }
	}
	text, err := os.ReadFile(filepath.Join(state, "s3", "users.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &users), "%s", text)
	require.Len(t, users.AccessAccounts, 3)
	server := storetest.VersitygwWith(t, storetest.Setup{AccountsFolder: filepath.Join(state, "s3")})
	as := func(key, secret string) *s3.Store {
		s, err := s3.New(s3.Options{Endpoint: server.Endpoint, AccessKey: key, SecretKey: secret})
		require.NoError(t, err)
		return s
	}
	owner := as(server.AccessKey, server.SecretKey)
	require.NoError(t, owner.EnsureBucket(t.Context()))
	policy, err := os.ReadFile(filepath.Join(state, "policy.json"))
	require.NoError(t, err)
	require.NoError(t, owner.PutPolicy(t.Context(), string(policy)))
	const data, request = "runs/run=a/table=turns/a", "requests/a.json"
	for key, may := range map[string][]string{"worker": {data}, "operator": {data, request}, "reader": nil} {
		account := users.AccessAccounts[key]
		require.Equal(t, key, account.Access)
		require.Equal(t, "user", account.Role)
		s := as(key, account.Secret)
		for _, name := range []string{data, request} {
			err := s.Put(t.Context(), name, []byte("x"))
			require.Equal(t, !slices.Contains(may, name), errors.Is(err, store.ErrCredentials), "%s: %s: %v", key,
				name, err)
		}
		_, err := s.List(t.Context(), "runs/")
		require.NoError(t, err, key)
		require.ErrorIs(t, s.PutPolicy(t.Context(), string(policy)), store.ErrCredentials, key)
		role := map[string]string{"worker": "owner"}[key]
		shown := script("env", cmp.Or(role, key))
		require.Equal(t, role == "", strings.Contains(shown, "AWS_SECRET_ACCESS_KEY="+account.Secret+"\n"), key)
	}
}

// compose.sh pin notes the digests of the images that podman has, and later calls take them.
func TestComposePinsImages(t *testing.T) {
	find(t, "podman", "COMPOSE")
	folder := t.TempDir()
	storage := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + folder + "/graph\"\nrunroot = \"" + folder + "/run\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "storage.conf"), []byte(storage), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte("x"), 0o600))
	env := append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(folder, "storage.conf"),
		"COMPOSE=echo podman", "STATE="+filepath.Join(folder, "state"))
	run := func(env []string, program string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = env
		out, err := cmd.Output()
		require.NoError(t, err, "%s %v: %v", program, args, err)
		return string(out)
	}
	const image = "docker.io/team/server:1"
	run(env, "tar", "-C", folder, "-cf", filepath.Join(folder, "x.tar"), "file")
	run(env, "podman", "import", "-q", filepath.Join(folder, "x.tar"), image)
	named := env
	for _, name := range []string{"POSTGRES", "TEMPORAL", "S3", "PROMETHEUS", "ALERTMANAGER", "GRAFANA"} {
		named = append(named, name+"_IMAGE="+image)
	}
	require.Error(t, (&exec.Cmd{Path: "./compose.sh", Args: []string{"compose.sh", "pin"}, Env: env}).Run(),
		"the public images are not here")
	lines := strings.Fields(run(named, "./compose.sh", "pin"))
	require.Len(t, lines, 6)
	for _, line := range lines {
		require.Regexp(t, `^([A-Z0-9]+_IMAGE)=\$\{[A-Z0-9]+_IMAGE:-docker\.io/team/server@sha256:[0-9a-f]{64}\}$`, line)
	}
	t.Cleanup(func() { run(env, "podman", "rmi", "-f", image) }) // its files may be another user's
}

// podman-compose reads the file as compose.sh hands it over: every service has an image that is made here, and every
// variable its value. Starting the services takes these images, and so a person: make compose-up.
func TestPodmanComposeReadsTheFile(t *testing.T) {
	find(t, "podman", "COMPOSE")
	python := built(t, "worlds/compose/bin/python", "COMPOSE") // tools/worlds.sh compose
	script := exec.Command("./compose.sh", "config")
	script.Env = append(os.Environ(), "COMPOSE="+python+" -m podman_compose", "STATE="+t.TempDir(), "IMAGES=local")
	var messages strings.Builder
	script.Stderr = &messages
	out, err := script.Output()
	require.NoError(t, err, messages.String())
	require.NotContains(t, string(out), "${")
	var read map[string]any
	require.NoError(t, yaml.Unmarshal(out, &read))
	got := read["services"].(map[string]any)
	for name, service := range composed(t)["services"].(map[string]any) {
		if name == "grafana" {
			require.NotContains(t, got, name)
			continue
		}
		require.Regexp(t, `^localhost/ropewalk-[a-z0-9]+:dev$`, at(got[name], "image"), name)
		variables, _ := at(service, "environment").(map[string]any)
		for variable := range variables {
			require.NotEmpty(t, at(got[name], "environment", variable), "%s: %s", name, variable)
		}
		require.Equal(t, len(list(service, "volumes")), len(list(got[name], "volumes")), name)
		require.Len(t, list(got[name], "command"), len(list(service, "command")), name)
	}
}

// list returns a field that is a list; nil if it is absent or something else.
func list(service any, field string) []any {
	out, _ := at(service, field).([]any)
	return out
}

// Prometheus reads the metrics of every service that has an address for them, and of no other.
func TestComposeTargets(t *testing.T) {
	find(t, "openssl", "OPENSSL")
	state := t.TempDir()
	script := exec.Command("./compose.sh", "env")
	script.Env = append(os.Environ(), "COMPOSE=true", "STATE="+state)
	out, err := script.CombinedOutput()
	require.NoError(t, err, "%s", out)
	prometheus, err := os.ReadFile("monitoring/prometheus.yml")
	require.NoError(t, err)
	var want, got []string
	for name, service := range composed(t)["services"].(map[string]any) {
		command := fmt.Sprint(at(service, "command"), at(service, "environment", "ROPEWALK_METRICS_ADDRESS"))
		if m := regexp.MustCompile(`0\.0\.0\.0:(94\d\d)`).FindStringSubmatch(command); m != nil {
			want = append(want, name+":"+m[1])
		}
	}
	files, err := filepath.Glob(filepath.Join(state, "targets", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var targets []struct{ Targets []string }
		require.NoError(t, json.Unmarshal(text, &targets), "%s", text)
		for _, one := range targets {
			got = append(got, one.Targets...)
		}
		kind := strings.TrimSuffix(filepath.Base(file), ".json")
		require.Contains(t, string(prometheus), "job_name: ropewalk-"+kind+"\n")
		require.Contains(t, string(prometheus), "targets/"+kind+"*.json")
	}
	require.ElementsMatch(t, want, got)
	require.Len(t, want, 5, "four workers, the monitor")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Temporal gets the dynamic settings of temporal.yaml.
func TestComposeDynamicSettings(t *testing.T) {
	conf, err := temporalconf.Default()
	require.NoError(t, err)
	text, err := os.ReadFile("temporal/dynamic.yaml")
	require.NoError(t, err)
	var file map[string][]struct {
		Value       any
		Constraints map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	got := map[string]any{}
	for name, values := range file {
		require.Len(t, values, 1, name)
		require.Empty(t, values[0].Constraints, name)
		got[name] = values[0].Value
	}
	require.Equal(t, conf.DynamicConfig, got)
}

// The images that build.sh makes of servers are those that IMAGES=local names, and only Grafana is left out.
func TestComposeLocalImages(t *testing.T) {
	text, err := os.ReadFile("compose.sh")
	require.NoError(t, err)
	for name, service := range composed(t)["services"].(map[string]any) {
		m := regexp.MustCompile(`^\$\{([A-Z0-9]+)_IMAGE:-docker\.io/`).FindStringSubmatch(at(service, "image").(string))
		switch {
		case m == nil:
			require.NotContains(t, at(service, "image"), "docker.io", name)
		case name == "grafana":
			require.Equal(t, []any{"grafana"}, at(service, "profiles"))
		default:
			require.Nil(t, at(service, "profiles"), name)
			require.Contains(t, string(text), m[1]+"_IMAGE=${"+m[1]+"_IMAGE:-$local-"+name+":", name)
			require.FileExists(t, "containers/Containerfile."+name)
		}
	}
}
