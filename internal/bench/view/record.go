package view

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The run and the trajectories of one of its steps.
const (
	runName         = "large"
	groups, samples = 64, 8
	perStep         = groups * samples
)

// makeRecord commits the run into a folder.
func makeRecord(folder string, steps int) (err error) {
	defer func() {
		if failed, ok := recover().(failure); ok {
			err = failed.error
		}
	}()
	fmt.Fprintln(os.Stderr, "making the record…")
	objects := mem.New()
	recordtest.Large(maker{}, objects, recordtest.LargeOptions{Run: runName, Steps: steps, Groups: groups,
		Samples: samples, Shards: 2, EvaluateEvery: 20, Problems: 513, Seed: 1})
	recordtest.Unpack(maker{}, objects, folder)
	return nil
}

// maker lets the makers of records for tests run outside a test.
type maker struct{ testing.TB }

// failure is what maker panics with.
type failure struct{ error }

// Helper implements testing.TB.
func (maker) Helper() {}

// Errorf implements testing.TB.
func (maker) Errorf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// FailNow implements testing.TB.
func (maker) FailNow() { panic(failure{errors.New("the record could not be made")}) }
