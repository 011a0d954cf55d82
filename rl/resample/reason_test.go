package resample

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// RowReasons has every reason that its block of constants declares.
func TestRowReasonsAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Reason
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || len(declared) > 0 {
			continue
		}
		for _, s := range block.Specs {
			text, err := strconv.Unquote(s.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, Reason(text))
		}
	}
	if len(declared) != len(RowReasons) {
		t.Fatalf("%d reasons are declared, %d are listed", len(declared), len(RowReasons))
	}
	for i, r := range declared {
		if RowReasons[i] != r {
			t.Errorf("reason %d is %s, the list has %s", i, r, RowReasons[i])
		}
	}
}
