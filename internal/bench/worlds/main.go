// Command worlds trains a small policy in each world, by GRPO and by the method of the world's paper, with several
// seeds through the real pipeline. It prints held-out success before and after training with 95% intervals.
//
// Glossary. A *cell* is one world with one method; its recipe is a file of the folder recipes, named WORLD-METHOD. A
// *trial* is a cell with one seed. A trial's run is named after the cell, the seed and the digest of the recipe. So a
// trial that is done is not repeated, and one that was interrupted goes on.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
)

//go:embed recipes/*.yaml
var files embed.FS

// limit is how many seconds of reinforcement learning a trial may take on two quiet cores.
const limit = 300

// rate is a share with its 95% interval.
type rate struct {
	Success float64 `json:"success"`
	Low     float64 `json:"ci_low"`
	High    float64 `json:"ci_high"`
	N       int     `json:"n"`
}

// trial is the outcome of one run.
type trial struct {
	Cell  string `json:"cell"`
	Run   string `json:"run_id"`
	Seed  int    `json:"seed"`
	Steps int    `json:"steps"`

	Warm      rate    `json:"warm_start"`
	Final     rate    `json:"final"`
	RLSeconds float64 `json:"rl_seconds"`
}

// gain is the rise of success over the clone, in points.
func (t trial) gain() float64 { return 100 * (t.Final.Success - t.Warm.Success) }

func main() { bench.Main("worlds", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("worlds", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/worlds.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	seeds := flags.String("seeds", "1,2,3", "the seeds")
	only := flags.String("only", "", "cells, separated by commas; all when empty: "+strings.Join(cells(), ", "))
	set := flags.String("set", "", "changes to every recipe, as path=value, separated by spaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := cells()
	if *only != "" {
		var err error
		if chosen, err = bench.Choose("cells", *only, cells()); err != nil {
			return err
		}
	}
	numbers, err := seedsOf(*seeds)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "worlds-")
	if err != nil {
		return fmt.Errorf("make a folder for the recipes: %w", err)
	}
	defer os.RemoveAll(folder)
	b := bencher{program: bench.Program{Path: *binary, Progress: os.Stderr}, folder: folder,
		changes: strings.Fields(*set)}
	var all []trial
	for _, cell := range chosen {
		for _, seed := range numbers {
			t, err := b.try(ctx, cell, seed)
			if err != nil { // what is done is kept for the next call
				return errors.Join(err, report(*out, all))
			}
			all = append(all, t)
		}
	}
	return report(*out, all)
}

func report(out string, all []trial) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Print(table(all))
	return bench.Write(out, map[string]any{"trials": all, "cells": summaries(all)})
}

// cells lists the cells in the order of their names.
func cells() []string {
	entries, err := files.ReadDir("recipes")
	if err != nil {
		panic(err) // they are embedded
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

func seedsOf(text string) (out []int, err error) {
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("seed %q is not a whole number from 0", one)
		}
		out = append(out, n)
	}
	return out, nil
}

// bencher runs trials.
type bencher struct {
	program bench.Program
	folder  string
	changes []string
}

// try runs a trial, continues it, or reads its result if it is done.
func (b bencher) try(ctx context.Context, cell string, seed int) (trial, error) {
	t := trial{Cell: cell}
	text, err := files.ReadFile(path.Join("recipes", cell+".yaml"))
	if err != nil {
		return t, err
	}
	file := filepath.Join(b.folder, cell+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return t, err
	}
	changed := []string{"--seed", strconv.Itoa(seed)}
	for _, c := range b.changes {
		changed = append(changed, "--set", c)
	}
	run, err := b.name(ctx, file, cell, seed, changed)
	if err != nil {
		return t, err
	}
	known, err := b.known(ctx)
	if err != nil {
		return t, err
	}
	args := append([]string{"run", file, "--run-id", run, "--json"}, changed...)
	if slices.Contains(known, run) {
		args = []string{"resume", run, "--json"}
	}
	if err := b.program.Run(ctx, &t, args...); err != nil {
		return t, err
	}
	t.Cell = cell
	return t, nil
}

// name returns the name of a trial's run. The recipe with everything that it inherits is part of it.
func (b bencher) name(ctx context.Context, file, cell string, seed int, changed []string) (string, error) {
	var resolved struct {
		Digest string `json:"digest"`
	}
	args := append([]string{"run", file, "--dry-run", "--json"}, changed...)
	if err := b.program.Run(ctx, &resolved, args...); err != nil {
		return "", err
	}
	if len(resolved.Digest) < digits {
		return "", fmt.Errorf("run %s --dry-run: it printed no digest of the recipe", file)
	}
	return fmt.Sprintf("worlds-%s-s%d-%s", cell, seed, resolved.Digest[:digits]), nil
}

// digits is how much of the recipe's digest a run's name holds.
const digits = 8

// known lists the runs of the record.
func (b bencher) known(ctx context.Context) (out []string, err error) {
	var listed struct {
		Runs []struct {
			Run string `json:"run"`
		} `json:"runs"`
	}
	if err := b.program.Run(ctx, &listed, "runs", "--json"); err != nil {
		return nil, err
	}
	for _, r := range listed.Runs {
		out = append(out, r.Run)
	}
	return out, nil
}
