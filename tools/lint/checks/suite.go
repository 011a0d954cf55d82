package main

import (
	"go/token"

	"go.temporal.io/sdk/contrib/tools/workflowcheck/determinism"
	"go.temporal.io/sdk/contrib/tools/workflowcheck/workflow"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// deterministic are functions that workflowcheck takes for deterministic in addition to its own list, which has Sprintf
// and its like only. Formatting into a writer is as deterministic as its writer, and os.Stdout and os.Stderr are
// reported by themselves.
var deterministic = determinism.IdentRefs{"fmt.Fprint": false, "fmt.Fprintf": false, "fmt.Fprintln": false}

// checks returns go vet's checks, those of staticcheck that are on by default, the one for unused code, and
// workflowcheck.
func checks() []*analysis.Analyzer {
	var out []*analysis.Analyzer
	for _, a := range vet.Suite {
		out = append(out, named(a))
	}
	for _, list := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers} {
		for _, a := range list {
			if !a.Doc.NonDefault {
				out = append(out, named(a.Analyzer))
			}
		}
	}
	known := workflow.DefaultIdentRefs.Clone().SetAll(deterministic)
	return append(out, named(unusedCode), named(workflow.NewChecker(workflow.Config{IdentRefs: known}).NewAnalyzer()))
}

// named returns a check whose findings end in its name. They propose no fix: the go command does not apply them.
func named(check *analysis.Analyzer) *analysis.Analyzer {
	out := *check
	out.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			d.Message += " (" + check.Name + ")"
			d.SuggestedFixes = nil
			report(d)
		}
		return check.Run(pass)
	}
	return &out
}

// unusedCode reports what staticcheck's U1000 finds, which itself only returns it: staticcheck reports what is unused
// in a package with and without its tests. The go command has a package checked together with the tests that are in it,
// so that what a test uses is used. Tests in a package of their own see exported identifiers only, which are never
// unused.
var unusedCode = &analysis.Analyzer{
	Name:     "U1000",
	Doc:      "report unused code",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		files := map[string]*token.File{}
		for _, f := range pass.Files {
			file := pass.Fset.File(f.FileStart)
			files[file.Name()] = file
		}
		for _, object := range pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result).Unused {
			if file, ok := files[object.Position.Filename]; ok {
				pass.Reportf(file.Pos(object.Position.Offset), "%s %s is unused", object.Kind, object.Name)
			}
		}
		return nil, nil
	},
}
