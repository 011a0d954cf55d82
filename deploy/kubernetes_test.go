package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Modules whose files say what a manifest may hold: Kubernetes' own OpenAPI file, the definitions of the custom
// resources, and the Compose specification's schema. They are downloaded, checked by these sums, and neither compiled
// nor linked.
var modules = map[string]string{
	composeModule:                         "h1:UHSv/QHlo6QJtrT4igF1rdORgIUhDo1gWuyJUoiNNIM=",
	"k8s.io/kubernetes@v1.33.3":           "h1:dBx5Z2ZhR8kNzAwCoCz4j1niUbUrNUDVxeSj4/Ienu0=",
	"github.com/kedacore/keda/v2@v2.17.2": "h1:xlrcK5TKABJF9PebK79sgL07s/csGjL3H4m72OkZXxk=",
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
}

// moduleFolder returns the folder of a module's files.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // outside of the project's own module
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	_ = json.Unmarshal(out, &got) // an answer that cannot be read has no folder
	if err != nil || got.Dir == "" {
		if os.Getenv("ROPEWALK_REQUIRE_HELM") != "" {
			t.Fatalf("ROPEWALK_REQUIRE_HELM is set, and %s cannot be downloaded: %v %s", module, err, got.Error)
		}
		t.Skipf("%s cannot be downloaded: %v %s", module, err, got.Error)
	}
	require.Equal(t, modules[module], got.Sum, module)
	return got.Dir
}

// schemas holds the schema of each kind of manifest, by "apiVersion kind".
type schemas struct {
	compiler *jsonschema.Compiler
	where    map[string]string // location of the schema
}

func newSchemas(t *testing.T) schemas {
	t.Helper()
	s := schemas{compiler: jsonschema.NewCompiler(), where: map[string]string{}}
	s.compiler.DefaultDraft(jsonschema.Draft4)
	s.addKubernetes(t, filepath.Join(moduleFolder(t, "k8s.io/kubernetes@v1.33.3"), "api/openapi-spec/swagger.json"))
	for _, file := range customResources(t) {
		s.addCustom(t, file)
	}
	return s
}

// customResources are the files that define the custom resources of KEDA and the Prometheus operator.
func customResources(t *testing.T) (all []string) {
	t.Helper()
	for module, pattern := range map[string]string{
		"github.com/kedacore/keda/v2@v2.17.2":                        "config/crd/bases/keda.sh_*.yaml",
		"github.com/prometheus-operator/prometheus-operator@v0.85.0": "example/prometheus-operator-crd/*monitors.yaml",
	} {
		files, err := filepath.Glob(filepath.Join(moduleFolder(t, module), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		all = append(all, files...)
	}
	return all
}

// addKubernetes adds every definition of Kubernetes' OpenAPI file.
func (s schemas) addKubernetes(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	root := document.(map[string]any)
	delete(root, "paths")
	strict(root["definitions"])
	const location = "kubernetes.json"
	require.NoError(t, s.compiler.AddResource(location, root))
	for name, definition := range root["definitions"].(map[string]any) {
		kinds, _ := definition.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, one := range kinds {
			k := one.(map[string]any)
			version := strings.TrimPrefix(fmt.Sprintf("%s/%s", k["group"], k["version"]), "/")
			s.where[fmt.Sprintf("%s %s", version, k["kind"])] = location + "#/definitions/" + name
		}
	}
}

// addCustom adds the versions of a custom resource.
func (s schemas) addCustom(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var resource struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &resource))
	for _, v := range resource.Spec.Versions {
		schema := asJSON(t, v.Schema.OpenAPIV3Schema)
		strict(schema)
		schema.(map[string]any)["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
		location := fmt.Sprintf("%s-%s-%s.json", resource.Spec.Group, v.Name, resource.Spec.Names.Kind)
		require.NoError(t, s.compiler.AddResource(location, schema))
		s.where[fmt.Sprintf("%s/%s %s", resource.Spec.Group, v.Name, resource.Spec.Names.Kind)] = location
	}
}

// strict makes a schema refuse fields that it does not name, as a server does that is asked for strict validation, and
// lets quantities and ports be numbers or texts, which the files say in their own words.
func strict(schema any) {
	switch node := schema.(type) {
	case []any:
		for _, child := range node {
			strict(child)
		}
	case map[string]any:
		_, isObject := node["properties"].(map[string]any)
		_, open := node["additionalProperties"]
		if isObject && !open && node["x-kubernetes-preserve-unknown-fields"] != true {
			node["additionalProperties"] = false
		}
		quantity, _ := node["description"].(string)
		if node["format"] == "int-or-string" || node["x-kubernetes-int-or-string"] == true ||
			node["type"] == "string" && strings.HasPrefix(quantity, "Quantity is a fixed-point") {
			node["type"] = []any{"string", "integer", "number"}
		}
		delete(node, "default") // of no use here, and null in some places
		for _, child := range node {
			strict(child)
		}
	}
}

// asJSON turns what a YAML file holds into the values that JSON has.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	return out
}

// check validates one manifest.
func (s schemas) check(t *testing.T, manifest map[string]any) error {
	t.Helper()
	kind := fmt.Sprintf("%v %v", manifest["apiVersion"], manifest["kind"])
	where := s.where[kind]
	if where == "" {
		return fmt.Errorf("there is no kind %s", kind)
	}
	schema, err := s.compiler.Compile(where)
	require.NoError(t, err, kind)
	if err := schema.Validate(asJSON(t, manifest)); err != nil {
		return fmt.Errorf("%s %v: %w", kind, manifest["metadata"], err)
	}
	return nil
}
