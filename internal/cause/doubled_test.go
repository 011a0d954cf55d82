package cause_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No message of the tree names a file twice: an error of package os, which names its file, is not wrapped into a text
// that names the same expression.
func TestNoFileIsNamedTwice(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		for _, found := range doubled(t, path) {
			t.Error(found)
		}
		return nil
	}))
	require.Greater(t, files, 300)
}

// doubled lists the places of a file where an error of package os is wrapped with the name that it holds.
func doubled(t *testing.T, path string) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		}
		for i, s := range list {
			check, ok := s.(*ast.IfStmt)
			if !ok {
				continue
			}
			call := check.Init
			for before := i - 1; call == nil && before >= 0; before-- {
				if setsErr(list[before]) {
					call = list[before]
				}
			}
			for _, name := range namesIn(call) {
				if at := wrapsWith(check.Body, name); at.IsValid() {
					found = append(found, fmt.Sprintf("%s: the error of package os names %s already; wrap "+
						"cause.Of(err), or leave the name out", set.Position(at), name))
				}
			}
		}
		return true
	})
	return found
}

// setsErr reports whether a statement assigns to err.
func setsErr(s ast.Stmt) bool {
	assign, ok := s.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool { return types.ExprString(e) == "err" })
}

// ofFiles lists the functions of package os whose errors name a file.
var ofFiles = []string{"os.Chmod", "os.Create", "os.CreateTemp", "os.Link", "os.Lstat", "os.Mkdir", "os.MkdirAll",
	"os.MkdirTemp", "os.Open", "os.OpenFile", "os.ReadDir", "os.ReadFile", "os.Readlink", "os.Remove", "os.RemoveAll",
	"os.Rename", "os.Stat", "os.Symlink", "os.Truncate", "os.WriteFile"}

// namesIn returns the arguments of a call of package os in an assignment, as they are written.
func namesIn(s ast.Stmt) (names []string) {
	assign, ok := s.(*ast.AssignStmt)
	if !ok || len(assign.Rhs) != 1 {
		return nil
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok || !slices.Contains(ofFiles, types.ExprString(call.Fun)) {
		return nil
	}
	for _, a := range call.Args {
		names = append(names, types.ExprString(a))
	}
	return names
}

// wrapsWith returns where a block makes an error of a format, the name and the error itself.
func wrapsWith(b *ast.BlockStmt, name string) (at token.Pos) {
	ast.Inspect(b, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		format, ok := call.Args[0].(*ast.BasicLit)
		if !ok || !strings.Contains(format.Value, "%w") {
			return true
		}
		named, wrapped := false, false
		for _, a := range call.Args[1:] {
			text := types.ExprString(a)
			named, wrapped = named || text == name, wrapped || text == "err"
		}
		if named && wrapped {
			at = call.Pos()
		}
		return true
	})
	return at
}
