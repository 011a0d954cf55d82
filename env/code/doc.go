// Package code supplies tasks in HumanEval's form: the head of a Python function and its tests. The policy answers with
// a program, and the stage grade runs it with the tests (package sandbox/programs). README.md describes the files and
// the settings.
//
// Without a file the package generates small tasks of its own, so that it runs anywhere (generate.go).
package code
