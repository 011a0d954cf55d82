package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// checkGo returns the findings of a Go file: exported identifiers without a comment, long lines, and refused phrases
// in comments and strings. A generated file has none.
func checkGo(path string, src []byte) ([]finding, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var out []finding
	if !strings.HasSuffix(path, "_test.go") {
		out = uncommented(path, fset, file)
	}
	tokens := scanGo(src)
	for _, t := range tokens {
		if t.kind == token.COMMENT || t.kind == token.STRING {
			out = append(out, badPhrases(path, t.line, encoded.ReplaceAllString(t.text, ""))...)
		}
	}
	return append(out, longLines(path, string(src), unbreakableGo(tokens, fset, file))...), nil
}

// encoded is the name of a field in encoded data. Recorded data holds such names, so they cannot change.
var encoded = regexp.MustCompile(`\b(json|parquet):"[^"\n]*"`)

// goToken is a token and the line, from 1, that it starts on.
type goToken struct {
	kind token.Token
	line int
	text string
}

func scanGo(src []byte) []goToken {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, scanner.ScanComments)
	var out []goToken
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return out
		}
		out = append(out, goToken{kind, file.Line(pos), text})
	}
}

// unbreakableGo returns the lines that Go's syntax cannot break: those with a struct tag, which must follow its
// field's type and is one literal; those inside a raw string, whose bytes are data; and directives.
func unbreakableGo(tokens []goToken, fset *token.FileSet, file *ast.File) map[int]bool {
	out := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			out[fset.Position(f.Tag.Pos()).Line] = true
		}
		return true
	})
	for _, t := range tokens {
		switch {
		case t.kind == token.STRING && strings.HasPrefix(t.text, "`"):
			if n := strings.Count(t.text, "\n"); n > 0 {
				for i := range n + 1 {
					out[t.line+i] = true
				}
			}
		case t.kind == token.COMMENT && strings.HasPrefix(t.text, "//go:"):
			out[t.line] = true
		}
	}
	return out
}

// uncommented returns the exported identifiers of a file that have no comment: functions, methods of exported types
// and of exported interfaces, types, constants and variables. The comment of a group covers its constants and
// variables.
func uncommented(path string, fset *token.FileSet, file *ast.File) []finding {
	var out []finding
	report := func(at ast.Node, kind, name string) {
		what := fmt.Sprintf("exported %s %s has no comment", kind, name)
		out = append(out, finding{path, fset.Position(at.Pos()).Line, what})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Doc != nil {
				break
			}
			if d.Recv == nil {
				report(d, "function", d.Name.Name)
			} else if owner := receiver(d.Recv.List[0].Type); ast.IsExported(owner) {
				report(d, "method", owner+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				uncommentedSpec(d, spec, report)
			}
		}
	}
	return out
}

func uncommentedSpec(group *ast.GenDecl, spec ast.Spec, report func(at ast.Node, kind, name string)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		if group.Doc != nil || s.Doc != nil || s.Comment != nil {
			return
		}
		for _, name := range s.Names {
			if name.IsExported() {
				report(name, group.Tok.String(), name.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		if s.Doc == nil && s.Comment == nil && (group.Doc == nil || group.Lparen.IsValid()) {
			report(s, "type", s.Name.Name)
		}
		if face, ok := s.Type.(*ast.InterfaceType); ok {
			for _, m := range face.Methods.List {
				if len(m.Names) == 1 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
					report(m, "method", s.Name.Name+"."+m.Names[0].Name)
				}
			}
		}
	}
}

// receiver names the type of a method's receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
