package tools_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// calculator is the example of CONTRIBUTING.md. It adds fractions exactly.
type calculator struct{}

type fractions struct {
	Terms []string `json:"terms" doc:"fractions to add, such as 1/3"`
}

var declared = tools.Declaration{
	Spec: tool.Spec{Name: "calculator", Doc: "adds fractions exactly", Schema: tool.SchemaOf[fractions](),
		Repeat: tool.Pure},
	Open: func(tools.Host) (tool.Tool, error) { return calculator{}, nil },
}

func (calculator) Spec() tool.Spec { return declared.Spec }

func (calculator) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.Each(ctx, calls, func(_ context.Context, _ tool.Call, given fractions) (tool.Result, error) {
		sum := new(big.Rat)
		for _, term := range given.Terms {
			x, ok := new(big.Rat).SetString(term)
			if !ok {
				return tool.Result{Status: tool.Failed, Stderr: fmt.Sprintf("%q is not a fraction", term)}, nil
			}
			sum.Add(sum, x)
		}
		return tool.Result{Status: tool.OK, Stdout: sum.RatString()}, nil
	})
}

func TestTheExampleOfContributing(t *testing.T) {
	box, err := tools.Open([]tools.Declaration{declared}, tools.Host{})
	require.NoError(t, err)
	tooltest.Run(t, tooltest.Subject{Tool: box[0],
		Good: []string{`{"terms": ["1/3", "1/6"]}`, `{"terms": []}`, `{"terms": ["x"]}`}})
	got, err := box.RunEach(t.Context(), []tool.Call{{Tool: "calculator",
		Arguments: []byte(`{"terms": ["1/3", "1/6"]}`)}}, nil)
	require.NoError(t, err)
	require.Equal(t, "1/2", got[0].Stdout)
}

// No two tools answer to the same name, and the specification in the list is that of the tool.
func TestTheListOfTools(t *testing.T) {
	names := map[string]bool{}
	for _, d := range tools.All {
		named, err := tools.Named(d.Name)
		require.NoError(t, err)
		require.Equal(t, d.Spec, named.Spec)
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			require.False(t, names[name], "two tools answer to %s", name)
			names[name] = true
		}
		opened, err := d.Open(tools.Host{})
		require.NoError(t, err)
		require.Equal(t, d.Spec, opened.Spec())
	}
	_, err := tools.Named("no_such_tool")
	require.EqualError(t, err, `there is no tool "no_such_tool"; there are `+strings.Join(tools.Names(), ", "))
	_, err = tools.Select("python", "no_such_tool")
	require.ErrorContains(t, err, strings.Join(tools.Names(), ", "))
}

func TestAToolThatCannotBeOpenedIsNamed(t *testing.T) {
	_, err := tools.Open([]tools.Declaration{{Spec: tool.Spec{Name: "far"},
		Open: func(tools.Host) (tool.Tool, error) { return nil, errors.New("no route") }}}, tools.Host{})
	require.EqualError(t, err, "open tool far: no route")
}
