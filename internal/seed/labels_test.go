package seed

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// What a run samples follows from the labels of its streams, many of which are English words. The list holds every
// label in the tree, as its expression, and the texts that make up those that are not one text.
func TestLabelsStay(t *testing.T) {
	var labels []string
	for _, folder := range []string{"activities", "env", "internal", "policy", "rl", "rollout"} {
		require.NoError(t, filepath.WalkDir("../../"+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "internal/bench/") || strings.Contains(path, "internal/testing/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				labels = append(labels, labelsIn(file)...)
			}
			return err
		}))
	}
	slices.Sort(labels)
	golden.Check(t, "labels.txt", strings.Join(slices.Compact(labels), "\n")+"\n", *update)
}

// labelsIn returns the labels of the streams that a file derives, and the values of what it calls a label.
func labelsIn(file *ast.File) (out []string) {
	named := func(x ast.Expr) string {
		switch x := x.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			return x.Sel.Name
		}
		return ""
	}
	value := func(name string, x ast.Expr) {
		if strings.HasPrefix(strings.ToLower(name), "label") && texts(x) {
			out = append(out, name+" = "+types.ExprString(x))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			of, _ := n.Fun.(*ast.SelectorExpr)
			derives := of != nil && named(of.X) == "seed" && slices.Contains([]string{"Derive", "Rand"}, of.Sel.Name)
			if derives || slices.Contains([]string{"NewOrder", "NewBank", "Rate"}, named(n.Fun)) {
				for _, x := range n.Args {
					if derives || texts(x) {
						out = append(out, named(n.Fun)+" "+types.ExprString(x))
						break
					}
				}
			}
		case *ast.ValueSpec:
			for i, x := range n.Values {
				value(n.Names[i].Name, x)
			}
		case *ast.AssignStmt:
			for i, x := range n.Rhs {
				value(named(n.Lhs[i]), x)
			}
		case *ast.KeyValueExpr:
			value(named(n.Key), n.Value)
		}
		return true
	})
	return out
}

// texts reports whether an expression contains a text.
func texts(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			_, err := strconv.Unquote(l.Value)
			found = found || err == nil
		}
		return true
	})
	return found
}
