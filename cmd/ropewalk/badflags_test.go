package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refused runs a command line that must be refused before anything starts, and returns the message.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var out, messages bytes.Buffer
	require.Equal(t, exitBadInput, Run(t.Context(), args, &out, &messages), messages.String())
	require.Empty(t, out.String())
	require.NotContains(t, messages.String(), "starting")
	return strings.TrimSuffix(messages.String(), "\n")
}

// A flag that cannot be read is named, with what it takes; an unknown one leads to the one that is meant.
func TestBadFlags(t *testing.T) {
	for line, want := range map[string]string{
		"run quickstart --seed abc": `--seed: must be a whole number ≥ 0, got "abc"`,
		"run quickstart --seed -1":  `--seed: must be a whole number ≥ 0, got "-1"`,
		"run quickstart --seed 99999999999999999999": "--seed: must be a whole number ≥ 0 that fits 64 bits, " +
			`got "99999999999999999999"`,
		"run quickstart --seed":          "--seed: needs a value",
		"run quickstart --dry-run=maybe": `--dry-run: must be true or false, got "maybe"`,
		"show x --step abc":              `--step: must be a whole number, got "abc"`,
		"set x --learning-rate fast":     `--learning-rate: must be a number, got "fast"`,
		"unpark x --timeout 5":           `--timeout: must be a duration such as 30s, 10m or 2h, got "5"`,
		"sql --gen new QUERY":            `--gen: must be heads, all or a generation's number, got "new"`,
		"run quickstart --sed 3":         "unknown flag --sed; did you mean --seed or --set?",
		"run quickstart --dryrun":        "unknown flag --dryrun; did you mean --dry-run?",
		"run quickstart --dry_run":       "unknown flag --dry_run; did you mean --dry-run?",
		"run quickstart --steps 3":       "unknown flag --steps; did you mean --set steps=…?",
		"run quickstart --lr 1e-4":       "unknown flag --lr; did you mean --set optimizer.lr=…?",
		"show x --fixed":                 "unknown flag --fixed; `ropewalk show --help` lists the flags",
		"show x -steps 1":                "unknown flag -steps; did you mean --step?",
		"run quickstart -x":              "unknown flag -x; `ropewalk run --help` lists the flags",
		"gpu setup --with-lra":           "unknown flag --with-lra; did you mean --with-lora?",
	} {
		require.Equal(t, "ropewalk: "+want, refused(t, strings.Fields(line)...), line)
	}
}

// An empty text, as of a script's variable that is not set, is not taken for a flag that is left out.
func TestEmptyFlags(t *testing.T) {
	for flag, command := range map[string]string{
		"--run-id": "run quickstart", "--format": "export x -o y", "--steps": "export x -o y", "--output": "report x",
		"--recipe": "import openai x", "--host": "worker", "--from": "replay x --step 1",
	} {
		args := append(strings.Fields(command), flag, "")
		require.Equal(t, "ropewalk: "+flag+": is empty; give a value, or leave the flag out", refused(t, args...))
	}
}

func TestUnknownCommands(t *testing.T) {
	for line, want := range map[string]string{
		"rus":           `unknown command "rus"; did you mean run or runs?`,
		"insepct":       `unknown command "insepct"; did you mean inspect?`,
		"repo":          `unknown command "repo"; did you mean report?`,
		"EXPORTS":       `unknown command "EXPORTS"; did you mean export?`,
		"train":         `unknown command "train"; did you mean run?`,
		"status":        `unknown command "status"; did you mean runs?`,
		"ls":            `unknown command "ls"; did you mean runs?`,
		"logs":          `unknown command "logs"; did you mean follow?`,
		"bogus":         "unknown command \"bogus\"; `ropewalk --help` lists them",
		"sandbox sreve": `unknown command "sreve"; did you mean serve?`,
		"gpu stup":      `unknown command "stup"; did you mean setup?`,
		"gpu bogus":     "unknown command \"bogus\"; `ropewalk gpu --help` lists them",
		"rus --help":    `unknown command "rus"; did you mean run or runs?`,
		"gpu stup -h":   `unknown command "stup"; did you mean setup?`,
		"help rus":      `unknown command "rus"; did you mean run or runs?`,
		"help gpu stup": `unknown command "stup"; did you mean setup?`,
		"help run x":    `unexpected argument "x"`,
	} {
		require.Equal(t, "ropewalk: "+want, refused(t, strings.Fields(line)...), line)
	}
	for _, words := range meantBy {
		for _, word := range words {
			require.Contains(t, refused(t, word), "did you mean", "a word that is a command now needs no suggestion")
		}
	}
	var out, messages bytes.Buffer
	require.Equal(t, exitDone, Run(t.Context(), []string{"help", "gpu", "setup"}, &out, &messages))
	require.Contains(t, out.String(), "ropewalk gpu setup [flags]")
}

// A misspelt recipe leads to the recipe, preset or file that is meant.
func TestMisspeltRecipes(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "mine.yaml", "version: 1\n")
	write(t, "packed.yaml", "\x1f\x8b\x08 and so on")
	for line, want := range map[string]string{
		"run quikstart":         "no recipe file quikstart; did you mean quickstart?",
		"run quickstart.yml":    "no recipe file quickstart.yml; did you mean quickstart?",
		"run presets/drgrp":     "no recipe file presets/drgrp; did you mean presets/drgrpo?",
		"run drgrpo":            "no recipe file drgrpo; did you mean presets/drgrpo?",
		"run mien.yaml":         "no recipe file mien.yaml; did you mean mine.yaml?",
		"run ./mine.yml":        "no recipe file ./mine.yml; did you mean mine.yaml?",
		"run packed.yaml":       "packed.yaml:1: is compressed with gzip; unpack it first (gunzip)",
		"run .":                 "read recipe .: is a directory",
		"methods smapo":         "no method or recipe smapo; did you mean sampo or sapo?",
		"methods presets/drgrp": "no method or recipe presets/drgrp; did you mean presets/drgrpo?",
		"import opnai x":        `unknown format "opnai"; did you mean openai?`,
		"import openai nope":    "read conversations: nope: no such file or directory",
		"inspect packed.yaml": "packed.yaml: not a file of the record: it is compressed with gzip; " +
			"unpack it first (gunzip)",
		"inspect .":                     "read .: is a directory",
		"run quickstart --set lr=1":     "--set lr=1: no such field; did you mean optimizer.lr?",
		"run quickstart --set steps[=1": "--set steps[=1: no such field; did you mean steps?",
	} {
		require.Equal(t, "ropewalk: "+want, refused(t, strings.Fields(line)...), line)
	}
	require.Contains(t, refused(t, "import", "openai", "."), ": the folder holds no file *.jsonl")
	require.Contains(t, refused(t, "import", "openai", "packed.yaml"),
		"packed.yaml:1: the packed file is not whole: unexpected EOF")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}
