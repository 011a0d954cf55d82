package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// source is a Go file and what the measures ask of it.
type source struct {
	path, folder    string
	name            string // of the package
	test, generated bool
	rawLines        int
	code            []bool         // whether line i+1 holds code
	long            int            // lines over 120 columns
	prose           string         // comments and strings, without line ends and the marks of comments
	uses            map[string]int // identifiers, and what they are part of: "pkg.Name", "pkg.Name(", "Name{", "Name:"
	imports         []string
	declared        []string // top-level names without methods
	functions       []function
	embeds          map[string][]string // by struct: embedded types of the same package
}

// function is a function or, with a receiver, a method.
type function struct {
	receiver, name string
	takes          string // the type of the first parameter after a context, if this package declares it
	lines          int
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// parse reads a file. Of one with a syntax error it reads what it can.
func parse(name, text string) *source {
	s := &source{path: name, folder: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		generated: generatedLine.MatchString(text[:min(len(text), 2000)]), rawLines: strings.Count(text, "\n"),
		uses: map[string]int{}, embeds: map[string][]string{}}
	fset := token.NewFileSet()
	s.tokens(fset, text)
	f, _ := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if f == nil || f.Name == nil {
		return s
	}
	s.name = f.Name.Name
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			s.imports = append(s.imports, p)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			s.function(fset, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.declare(spec)
			}
		}
	}
	return s
}

// tokens fills in what needs no syntax: lines of code, long lines, prose and uses.
func (s *source) tokens(fset *token.FileSet, text string) {
	lines := strings.Split(text, "\n")
	s.code = make([]bool, len(lines))
	raw := make([]bool, len(lines)) // within a raw string of several lines
	file := fset.AddFile(s.path, -1, len(text))
	var sc scanner.Scanner
	sc.Init(file, []byte(text), nil, scanner.ScanComments)
	var last [3]string // the tokens before
	var prose strings.Builder
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			break
		}
		at := file.Line(pos) - 1
		switch {
		case tok == token.COMMENT:
			say(&prose, lit)
			continue
		case tok == token.SEMICOLON && lit == "\n":
			continue
		case tok == token.STRING:
			say(&prose, lit)
			for i, line := range strings.Split(lit, "\n") {
				s.code[at+i] = s.code[at+i] || strings.TrimSpace(line) != ""
				raw[at+i] = raw[at+i] || strings.Contains(lit, "\n")
			}
		}
		s.code[at] = true
		this := lit
		if tok != token.IDENT {
			this = tok.String()
		}
		s.use(last, tok, this)
		last = [3]string{last[1], last[2], this}
	}
	s.prose = prose.String()
	for i, line := range lines {
		width := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if width > 120 && !raw[i] && !s.generated && !strings.Contains(line, "`") && !strings.HasPrefix(line, "//go:") {
			s.long++
		}
	}
}

// use counts an identifier with what comes before it, and what a bracket after an identifier makes of it.
func (s *source) use(last [3]string, tok token.Token, this string) {
	qualified := last[0] + last[1] + last[2]
	switch {
	case tok == token.IDENT:
		s.uses[this]++
		if last[2] == "." {
			s.uses[last[1]+"."+this]++
		}
	case tok == token.LPAREN && last[1] == ".":
		s.uses[qualified+"("]++
	case tok == token.LBRACE || tok == token.COLON:
		s.uses[last[2]+this]++
	}
}

// say adds a comment or a string to prose.
func say(prose *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		prose.WriteString(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "//")) + " ")
	}
}

func (s *source) lines() (n int) {
	for _, code := range s.code {
		if code {
			n++
		}
	}
	return n
}

func (s *source) function(fset *token.FileSet, d *ast.FuncDecl) {
	f := function{name: d.Name.Name, lines: fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1}
	if d.Recv != nil && len(d.Recv.List) > 0 {
		f.receiver = typeName(d.Recv.List[0].Type)
	} else {
		s.declare(&ast.ValueSpec{Names: []*ast.Ident{d.Name}})
		params := d.Type.Params.List
		if len(params) > 0 {
			if x, ok := params[0].Type.(*ast.SelectorExpr); ok && x.Sel.Name == "Context" {
				params = params[1:]
			}
		}
		if len(params) > 0 {
			f.takes = typeName(params[0].Type)
		}
	}
	s.functions = append(s.functions, f)
}

func (s *source) declare(spec ast.Spec) {
	var names []*ast.Ident
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		names = spec.Names
	case *ast.TypeSpec:
		names = []*ast.Ident{spec.Name}
		if t, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range t.Fields.List {
				if name := typeName(f.Type); len(f.Names) == 0 && name != "" {
					s.embeds[spec.Name.Name] = append(s.embeds[spec.Name.Name], name)
				}
			}
		}
	}
	for _, n := range names {
		if n.Name != "_" && n.Name != "init" && n.Name != "main" {
			s.declared = append(s.declared, n.Name)
		}
	}
}

// typeName returns the name of a type of the same package, of a pointer to it or of its instance; else "".
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}
