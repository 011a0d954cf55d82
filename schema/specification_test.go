package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

// The specification's generated parts, its tables and its JSON schemas follow from the declarations; -update writes
// them.
func TestSpecificationIsUpToDate(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	out := string(text)
	for name, made := range map[string]string{
		"version": fmt.Sprintf("This is format version **%d.%d**: major version %d, minor version %d.", Major, Version,
			Major, Version),
		"documents": documentsText(),
		"tables":    tablesText(),
	} {
		out = between(t, out, name, made)
	}
	derived(t, "README.md", []byte(out))
	for name, v := range map[string]any{
		"tables.json": TableDocs(), "manifest.schema.json": documentSchema[Manifest]("manifest"),
		"head.schema.json": documentSchema[Head]("head"),
	} {
		data, err := Canonical(v)
		require.NoError(t, err)
		derived(t, name, data)
	}
}

// between replaces what is between the mark of this test and the one that ends a part.
func between(t *testing.T, text, name, made string) string {
	t.Helper()
	const mark = "<!-- Made by: go test ./schema -update -->\n"
	before, after, ok := strings.Cut(text, "<!-- end of the "+name+" -->\n")
	start := strings.LastIndex(before, mark)
	require.True(t, ok && start >= 0, "README.md has no marks of the %s", name)
	return before[:start] + mark + "\n" + strings.TrimSpace(made) + "\n\n<!-- end of the " + name + " -->\n" + after
}

func derived(t *testing.T, path string, data []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	there, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(data), string(there), "%s is stale; run go test ./schema -update", path)
}

func documentsText() string {
	var b strings.Builder
	for _, d := range []struct {
		name string
		of   reflect.Type
	}{
		{"Manifest", reflect.TypeFor[Manifest]()}, {"Head", reflect.TypeFor[Head]()}, {"Ref", reflect.TypeFor[Ref]()},
		{"Shard", reflect.TypeFor[ShardInfo]()}, {"Checkpoint", reflect.TypeFor[Checkpoint]()},
		{"File of a checkpoint", reflect.TypeFor[CheckpointFile]()},
	} {
		fmt.Fprintf(&b, "### %s\n\n| field | type | version | meaning |\n| --- | --- | --- | --- |\n", d.name)
		for _, f := range documentFields(d.of) {
			absent, since := "", f.Since
			if f.Optional {
				absent = ", may be absent"
			}
			if since == "" {
				since = "1"
			}
			fmt.Fprintf(&b, "| `%s` | %s%s | %s | %s |\n", f.Name, jsonType(f.schema), absent, since, f.Doc)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// jsonType writes the type of a JSON schema in words.
func jsonType(s map[string]any) string {
	switch kind := s["type"].(type) {
	case []any:
		return fmt.Sprint(kind[0]) + " or null"
	case string:
		if items, ok := s["items"].(map[string]any); ok {
			return "array of " + jsonType(items) + "s"
		}
		if values, ok := s["additionalProperties"].(map[string]any); ok {
			return "object of " + jsonType(values) + "s"
		}
		return kind
	}
	return "any"
}

func tablesText() string {
	var b strings.Builder
	for _, d := range TableDocs() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", d.Table, folded(fmt.Sprintf("%s. %s, since version %d.", sentence(d.Doc),
			map[string]string{"parquet": "Parquet", "arrow": "Arrow IPC"}[d.Format], d.Since)))
		b.WriteString("| column | type | unit | version | meaning |\n| --- | --- | --- | --- | --- |\n")
		for _, c := range d.Columns {
			kind := c.Type
			if c.Nullable {
				kind += "?"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s |\n", c.Name, kind, c.Unit, c.Since, c.Doc)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// folded breaks a paragraph into lines of at most 120 columns.
func folded(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > 120 {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Every table, column and field is described, and the versions that the codec writes are those of the columns.
func TestEverythingIsDescribed(t *testing.T) {
	known := map[Table]bool{}
	for _, d := range TableDocs() {
		known[d.Table] = true
		require.NotEmpty(t, d.Doc, d.Table)
		require.NotEmpty(t, d.Columns, d.Table)
		version := max(4, d.Since)
		for _, c := range d.Columns {
			require.NotEmpty(t, c.Doc, "%s.%s", d.Table, c.Name)
			require.NotEmpty(t, c.Type, "%s.%s", d.Table, c.Name)
			require.LessOrEqual(t, c.Since, Version)
			require.True(t, c.Nullable || c.Since == d.Since, "%s.%s: a column that is added later is nullable",
				d.Table, c.Name)
			version = max(version, c.Since)
		}
		require.LessOrEqual(t, version, d.Version, "the version of table %s is before that of a column", d.Table)
		require.NotContains(t, d.Doc, "|", d.Table)
	}
	for _, table := range append(Tables(), Batch, ReplayBatch) {
		require.True(t, known[table], "declared.go has no entry for table %s", table)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Manifest](), reflect.TypeFor[Head](), reflect.TypeFor[Ref](),
		reflect.TypeFor[ShardInfo](), reflect.TypeFor[Checkpoint](), reflect.TypeFor[CheckpointFile]()} {
		for _, f := range documentFields(of) {
			require.NotEmpty(t, f.Doc, "%s.%s", of, f.Name)
		}
	}
}

// The described columns are those of the files, in their order.
func TestDescriptionsAreThoseOfTheFiles(t *testing.T) {
	for _, c := range tableCases() {
		described, err := Describe(encodeFixture(c, 3, 5), 0)
		require.NoError(t, err)
		require.Equal(t, described.SchemaVersion, versionOf(c.table))
		columns := Columns(c.table)
		require.Len(t, described.Columns, len(columns), c.table)
		for i, got := range described.Columns {
			name, _, _ := strings.Cut(got.Name, ".")
			require.Equal(t, columns[i].Name, name, c.table)
			require.Equal(t, columns[i].Nullable, got.Nullable, "%s.%s", c.table, name)
		}
	}
}

// The JSON schemas accept what the program writes, and refuse what it refuses for the form of a field.
func TestDocumentsFollowTheirSchemas(t *testing.T) {
	manifest, head := golden.Schema(t, "manifest.schema.json"), golden.Schema(t, "head.schema.json")
	data, err := EncodeManifest(fullManifest())
	require.NoError(t, err)
	value := func(text string) any {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err)
		return v
	}
	require.NoError(t, manifest.Validate(value(string(data))))
	h, err := NewHead("r", "2", Ref{Key: At("r", 2, "reward").ManifestKey(), Digest: Digest(nil)})
	require.NoError(t, err)
	written, err := EncodeHead(h)
	require.NoError(t, err)
	require.NoError(t, head.Validate(value(string(written))))
	for name, c := range map[string][2]string{
		"major":   {`"version": 1`, `"version": 2`},
		"digest":  {`"code": "`, `"code": "z`},
		"stage":   {`"stage": "`, `"stage": "A`},
		"missing": {`"gen": 2,`, ``},
		"number":  {`"gen": 2`, `"gen": 2.5`},
	} {
		changed := strings.Replace(string(data), c[0], c[1], 1)
		require.NotEqual(t, string(data), changed, name)
		require.Error(t, manifest.Validate(value(changed)), name)
	}
}

// Every key in the copy that a bucket gets belongs to this version, and the page names every file.
func TestSpecificationIsWhole(t *testing.T) {
	page := regexp.MustCompile("`([a-z.]+\\.(?:json|md))`")
	files := Specification()
	folder := fmt.Sprintf("format/%d.%d/", Major, Version)
	for key, data := range files {
		require.True(t, strings.HasPrefix(key, folder), key)
		require.NotEmpty(t, data, key)
		if filepath.Ext(key) == ".json" {
			require.True(t, json.Valid(data), key)
		}
	}
	text := string(files[folder+"README.md"])
	for _, m := range page.FindAllStringSubmatch(text[:strings.Index(text, "## Version")], -1) {
		require.Contains(t, files, folder+m[1])
	}
}
