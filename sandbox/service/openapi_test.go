package service

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

type schema struct {
	Type                 string            `json:"type"`
	Description          string            `json:"description"`
	Enum                 []string          `json:"enum"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *bool             `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Ref                  string            `json:"$ref"`
	Maximum              float64           `json:"maximum"`
	Encoding             string            `json:"contentEncoding"`
}

type document struct {
	OpenAPI    string                                `json:"openapi"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

func openDocument(t *testing.T) document {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal(openAPI, &d))
	require.Equal(t, "3.1.0", d.OpenAPI)
	return d
}

func TestOpenAPIHoldsEveryField(t *testing.T) {
	d := openDocument(t)
	bodies := []any{CallBody{}, FileIn{}, LimitsBody{}, ResultBody{}, FileOut{}, TimingBody{}, HealthBody{},
		ErrorBody{}, ErrorDetail{}}
	require.Len(t, d.Components.Schemas, len(bodies))
	optional := map[string]bool{"CallBody.code": false} // a pointer, so that "" differs from a missing field
	for _, body := range bodies {
		typ := reflect.TypeOf(body)
		s, known := d.Components.Schemas[typ.Name()]
		require.True(t, known, typ.Name())
		require.NotNil(t, s.AdditionalProperties)
		require.False(t, *s.AdditionalProperties)
		require.Len(t, s.Properties, typ.NumField(), typ.Name())
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := typ.Name() + "." + name
			p, known := s.Properties[name]
			require.True(t, known, at)
			requireType(t, at, f.Type, p)
			mayMiss, special := optional[at]
			if !special {
				mayMiss = strings.HasPrefix(options, "omit")
			}
			require.Equal(t, !mayMiss, slices.Contains(s.Required, name), "%s is required", at)
		}
	}
}

// requireType compares a field's type with the document's.
func requireType(t *testing.T, at string, f reflect.Type, p schema) {
	t.Helper()
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	switch {
	case f.Kind() == reflect.Struct:
		require.Equal(t, "#/components/schemas/"+f.Name(), p.Ref, at)
		return
	case f == reflect.TypeFor[[]byte]():
		require.Equal(t, "string", p.Type, at)
		require.Equal(t, "base64", p.Encoding, at)
	case f.Kind() == reflect.Slice:
		require.Equal(t, "array", p.Type, at)
		requireType(t, at+"[]", f.Elem(), *p.Items)
	default:
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer",
			reflect.Float64: "number", reflect.Bool: "boolean"}
		require.Equal(t, want[f.Kind()], p.Type, at)
	}
	if !strings.HasSuffix(at, "[]") {
		require.NotEmpty(t, p.Description, at)
	}
}

func TestOpenAPIHoldsEveryCeiling(t *testing.T) {
	most := sandbox.MostLimits
	for name, want := range map[string]float64{
		"cpu_seconds": most.CPU.Seconds(), "wall_seconds": most.Wall.Seconds(),
		"memory_bytes": float64(most.MemoryBytes),
		"output_bytes": float64(most.OutputBytes), "file_bytes": float64(most.FileBytes),
		"processes": float64(most.Processes),
	} {
		require.Equal(t, want, openDocument(t).Components.Schemas["LimitsBody"].Properties[name].Maximum, name)
	}
}

func TestOpenAPIHoldsEveryPath(t *testing.T) {
	d := openDocument(t)
	var want, got []string
	for _, r := range routes() {
		want = append(want, strings.ToLower(r.method)+" "+r.path)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			got = append(got, method+" "+path)
		}
	}
	require.ElementsMatch(t, want, got)
}

func TestOpenAPIHoldsEveryWord(t *testing.T) {
	d := openDocument(t)
	var statuses []string
	for _, s := range sandbox.Statuses() {
		if !s.Breakage() {
			statuses = append(statuses, string(s))
		}
	}
	require.ElementsMatch(t, statuses, d.Components.Schemas["ResultBody"].Properties["status"].Enum)
	kinds := []string{kindMalformed, kindTooLarge, kindUnauthorized, kindNotFound, kindNoRoom, kindBusy, kindSlow,
		kindForbidden, kindWrongType}
	for kind := range statusOf {
		kinds = append(kinds, kind)
	}
	require.ElementsMatch(t, kinds, d.Components.Schemas["ErrorDetail"].Properties["kind"].Enum)
	presets := []string{sandbox.DefaultPreset.Name}
	for _, p := range sandbox.Presets() {
		presets = append(presets, p.Name)
	}
	require.ElementsMatch(t, presets, d.Components.Schemas["CallBody"].Properties["preset"].Enum)
	require.Contains(t, statusOf, rpc.KindBadCall)
}
