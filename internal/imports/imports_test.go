package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ropewalk/ropewalk"

// Other modules, by the names that the rules use.
const (
	parquet   = "github.com/parquet-go/parquet-go"
	arrow     = "github.com/apache/arrow/go/v17"
	unpackers = "github.com/klauspost/compress"
	minio     = "github.com/minio/minio-go/v7"
	mcpSDK    = "github.com/modelcontextprotocol/go-sdk"
	websocket = "github.com/coder/websocket"
	temporal  = "go.temporal.io"
	duckdb    = "github.com/duckdb/duckdb-go/v2"
	cobra     = "github.com/spf13/cobra"
	purego    = "github.com/ebitengine/purego"
	gonum     = "gonum.org/v1/gonum"
	yaml      = "go.yaml.in/yaml/v3"
	grpc      = "google.golang.org/grpc"
	prom      = "github.com/prometheus/client_golang"
	nvml      = "github.com/NVIDIA/go-nvml"
	errgroup  = "golang.org/x/sync/errgroup"
	bleve     = "github.com/blevesearch/bleve/v2"
	stdlib    = "std" // any package of the standard library
	thisRoom  = "."   // the room itself
	support   = "internal/testing"
	workflow  = temporal + "/sdk/workflow"
	temporals = temporal + "/sdk/temporal" // types of errors and search attributes
)

// mayImport lists, for closed rooms, everything that they may import.
var mayImport = map[string][]string{
	"rl":     {stdlib, thisRoom, "internal/rescue"},
	"schema": {stdlib, thisRoom, parquet, arrow, unpackers},
	// it knows no table
	"schema/parquet": {stdlib, parquet},
	// what decides during a rollout is as pure as rl
	"rollout/branch":   {stdlib, "rl/choice"},
	"rollout/debate":   {stdlib},
	"policy/scheduler": {stdlib},
	"workflows": {stdlib, thisRoom, workflow, temporals, "internal/step", "schema", "internal/badinput",
		"internal/machine"},
	"internal/step/api": {stdlib, "schema", "internal/machine"},
	"internal/commit":   {stdlib, "schema", "store", "internal/rescue"},
	"internal/refusal":  {stdlib},
	"store":             {stdlib, thisRoom, minio, "internal/cause", "internal/rescue"},
}

// neverReaches lists what a room must not depend on, directly or through others.
var neverReaches = map[string][]string{
	"schema":  {"store", temporal},
	"store":   {"schema", temporal},
	"rollout": {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"env":     {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"sandbox": {"store", temporal, "activities", "internal/step", "workflows", "internal/commit", "tool"},
	"tool": {"store", temporal, "activities", "internal/step", "workflows", "internal/commit", "rollout",
		"recipes"},
	"policy":          {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"gpu":             {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"recipes":         {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"workflows":       {"store", "rollout", "env", "sandbox", "tool", "recipes", "internal/commit", "policy/cpu"},
	"activities":      {"workflows", "cmd", "analysis"},
	"analysis":        {"workflows", "cmd"},
	"internal/commit": {temporal, "activities", "internal/step", "workflows"},
	// what stages compute: they fetch and commit in activities
	"internal/batch":     {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"internal/grading":   {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"internal/prompts":   {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"internal/selection": {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	"internal/training":  {"store", temporal, "activities", "internal/step", "workflows", "internal/commit"},
	// the pool serves stages, and knows none
	"internal/enginepool": {temporal, "activities", "internal/step", "workflows", "analysis", "cmd"},
	"cmd/gpu-check":       {duckdb, minio, "analysis", "internal/stack"}, // it runs on a bare machine
}

// onlyIn lists the only rooms that may import a package.
var onlyIn = map[string][]string{
	parquet:   {"schema"},
	arrow:     {"schema"},
	minio:     {"store/s3"},
	mcpSDK:    {"tool/mcp"},
	websocket: {"env/remote"},
	duckdb:    {"analysis"},
	cobra:     {"cmd"},
	purego:    {"policy"},
	gonum:     {"policy", "experiment"},
	yaml: {"gpu/plan", "recipes", "experiment", "internal/temporalconf",
		"sandbox/service"},
	grpc:  {"sandbox/rpc", "sandbox/service", "sandbox/client"},
	prom:  {"sandbox/service", "gpu/inventory", "internal/metrics", "internal/monitor", "internal/serve"},
	nvml:  {"gpu/device"},
	bleve: {"env"},
	// elsewhere a panic in a goroutine of a group would end the process
	errgroup: {"internal/rescue", "internal/bench", "cmd/gpu-check"},
	"internal/commit": {"activities", "analysis", "cmd", "internal/runs", "internal/enginepool", "internal/compaction",
		"internal/forks"},
	// what opens engines for it, and what leases them
	"internal/enginepool": {"activities", "cmd"},
	// rollout: the tokenizer of imports; evaluation: the order of records
	"env/calc":      {"env/environments", "rollout", "internal/evaluation"},
	"env/household": {"env/environments"},
	"env/shop":      {"env/environments"},
	"env/sokoban":   {"env/environments"},
	"workflows":     {"cmd", "internal/bench", "internal/importing", "internal/monitor", "internal/runs"},
	// what tests share: the product has none of it
	support: {"internal/bench"},
	"cmd":   {},
}

// binding are the modules that the program must be built with.
var binding = []string{parquet, arrow, minio, "go.temporal.io/sdk", "go.temporal.io/sdk/contrib/envconfig",
	duckdb,
	cobra, nvml}

type pkg struct {
	ImportPath string
	Standard   bool
	Name       string
	Imports    []string
	Deps       []string
	Module     *struct{ Path string }
	// TestImports are those of the package's own test files, XTestImports those of its package of tests.
	TestImports, XTestImports []string
}

func (p pkg) ours() bool   { return p.Module != nil && p.Module.Path == module }
func (p pkg) room() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// list asks the go command for every package of the module and for their dependencies.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps",
		"-json=ImportPath,Standard,Name,Imports,Deps,Module,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	all := map[string]pkg{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}

// in reports whether a path is in a room or another module.
func in(path, room string) bool {
	for _, root := range []string{room, module + "/" + room} {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// matches reports whether an import is one that a rule of the room names.
func matches(all map[string]pkg, path, room, name string) bool {
	switch name {
	case stdlib:
		return all[path].Standard || path == "C" || path == "unsafe"
	case thisRoom:
		return in(path, room)
	}
	return in(path, name)
}

// faults applies the three tables to the packages.
func faults(all map[string]pkg) []string {
	var out []string
	for _, p := range all {
		if p.ours() {
			out = slices.Concat(out, foreign(all, p), reached(p), trespassed(p))
		}
	}
	slices.Sort(out)
	return out
}

// foreign returns imports that a closed room may not have.
func foreign(all map[string]pkg, p pkg) (out []string) {
	for room, allowed := range mayImport {
		if !in(p.ImportPath, room) {
			continue
		}
		for _, i := range p.Imports {
			if !slices.ContainsFunc(allowed, func(name string) bool { return matches(all, i, room, name) }) {
				out = append(out, fmt.Sprintf("%s imports %s; %s may import %s only", p.room(), i, room,
					strings.Join(allowed, ", ")))
			}
		}
	}
	return out
}

// reached returns dependencies that a room must not have.
func reached(p pkg) (out []string) {
	for room, forbidden := range neverReaches {
		if !in(p.ImportPath, room) {
			continue
		}
		for _, d := range p.Deps {
			if slices.ContainsFunc(forbidden, func(name string) bool { return in(d, name) }) {
				out = append(out, fmt.Sprintf("%s depends on %s; %s must not", p.room(), d, room))
			}
		}
	}
	return out
}

// trespassed returns imports of packages that only other rooms may import.
func trespassed(p pkg) (out []string) {
	for name, rooms := range onlyIn {
		if in(p.ImportPath, name) || in(p.ImportPath, support) || tool(p) ||
			slices.ContainsFunc(rooms, func(room string) bool { return in(p.ImportPath, room) }) {
			continue
		}
		for _, i := range p.Imports {
			if in(i, name) {
				out = append(out, fmt.Sprintf("%s imports %s; %s may", p.room(), i, onlyOrNone(rooms)))
			}
		}
	}
	return out
}

// tool reports whether a package is a developer's program below internal, such as a benchmark. It constructs what it
// measures, as cmd does.
func tool(p pkg) bool { return p.Name == "main" && in(p.ImportPath, "internal") }

func onlyOrNone(rooms []string) string {
	if len(rooms) == 0 {
		return "no package"
	}
	return "only " + strings.Join(rooms, ", ")
}

func TestWhoImportsWhom(t *testing.T) {
	all := list(t)
	require.Contains(t, all, module+"/cmd/ropewalk")
	for _, fault := range faults(all) {
		t.Error(fault)
	}
}

// Every room that a rule names exists: a rule about a room that was renamed would never fail.
func TestRulesNameRoomsThatExist(t *testing.T) {
	all := list(t)
	rooms := map[string]bool{}
	for _, table := range []map[string][]string{mayImport, neverReaches, onlyIn} {
		for room, names := range table {
			rooms[room] = true
			for _, n := range names {
				rooms[n] = true
			}
		}
	}
	delete(rooms, stdlib)
	delete(rooms, thisRoom)
	for room := range rooms {
		found := false
		for path := range all {
			found = found || in(path, room)
		}
		if !found {
			t.Errorf("a rule names %s, which holds no package", room)
		}
	}
}

func TestBindingModulesAreBuiltIn(t *testing.T) {
	all := list(t)
	used := map[string]bool{}
	for _, d := range all[module+"/cmd/ropewalk"].Deps {
		if m := all[d].Module; m != nil {
			used[m.Path] = true
		}
	}
	for _, m := range binding {
		require.True(t, used[m], "the command is built without %s", m)
	}
}

// The rules find the imports that they forbid.
func TestFaultsAreFound(t *testing.T) {
	own := &struct{ Path string }{module}
	one := func(path string, imports, deps []string) map[string]pkg {
		return map[string]pkg{module + "/" + path: {ImportPath: module + "/" + path, Imports: imports, Deps: deps,
			Module: own}}
	}
	for _, c := range []struct {
		name, want    string
		path          string
		imports, deps []string
	}{
		{"rl with another module", "rl/loss imports " + gonum, "rl/loss", []string{gonum}, nil},
		{"rl with schema", "rl/loss imports " + module + "/schema", "rl/loss", []string{module + "/schema"}, nil},
		{"schema reaches store", "schema depends on " + module + "/store/mem", "schema", nil,
			[]string{module + "/store/mem"}},
		{"domain reaches Temporal", "rollout depends on go.temporal.io/sdk/client", "rollout", nil,
			[]string{"go.temporal.io/sdk/client"}},
		{"workflow with bulk data", "workflows imports " + module + "/internal/commit", "workflows",
			[]string{module + "/internal/commit"}, nil},
		{"workflow with a client", "workflows imports go.temporal.io/sdk/client", "workflows",
			[]string{"go.temporal.io/sdk/client"}, nil},
		{"second user of minio", "store/mem imports " + minio + "; only store/s3 may", "store/mem", []string{minio},
			nil},
		{"record outside its rooms", "rollout imports " + module + "/internal/commit; only", "rollout",
			[]string{module + "/internal/commit"}, nil},
		{"parquet outside schema", "analysis/sql imports " + parquet, "analysis/sql", []string{parquet}, nil},
		{"NVML outside its room", "gpu/lease imports " + nvml + "/pkg/nvml; only gpu/device may", "gpu/lease",
			[]string{nvml + "/pkg/nvml"}, nil},
		{"a pool that knows stages", "internal/enginepool depends on " + module + "/internal/step/api",
			"internal/enginepool", nil, []string{module + "/internal/step/api"}},
		{"a product that imports what tests share", "policy imports " + module + "/internal/testing/policytest; only",
			"policy", []string{module + "/internal/testing/policytest"}, nil},
		{"cmd imported", "analysis imports " + module + "/cmd/ropewalk; no package may", "analysis",
			[]string{module + "/cmd/ropewalk"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, strings.Join(faults(one(c.path, c.imports, c.deps)), "\n"), c.want)
		})
	}
}
