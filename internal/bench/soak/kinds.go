package soak

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// kind is a way for a program to end.
type kind struct {
	name   string
	weight int // out of about 1000
	call   func(i int64) sandbox.Call
	// output is what the program must print; nil means anything.
	output func(i int64) string
	// statuses are the allowed verdicts.
	statuses []sandbox.Status
}

// brief has the limits for programs that only their limits end.
var brief = sandbox.Limits{CPU: time.Second, Wall: 10 * time.Second}

// briefer has the limits for programs that would sleep, or divide their processor time among many processes.
var briefer = sandbox.Limits{CPU: time.Second, Wall: time.Second}

// kinds returns the programs of the load. Most are good, so that the hostile ones, each of which takes a second or
// more, leave them enough room.
func kinds(numpy bool) []kind {
	all := []kind{
		{name: "good", weight: 800, call: numbered("print(%d)"), output: printed, statuses: only(sandbox.StatusOK)},
		{name: "files", weight: 50, call: numbered("open('a', 'w').write('%d')\nprint(open('a').read())"),
			output: printed, statuses: only(sandbox.StatusOK)},
		{name: "raises", weight: 50, call: fixed("def f(): return 1 // 0\nf()", sandbox.Limits{}),
			statuses: only(sandbox.StatusRuntime)},
		{name: "syntax", weight: 20, call: fixed("def f(:", sandbox.Limits{}), statuses: only(sandbox.StatusSyntax)},
		{name: "exits", weight: 10, call: fixed("import os; os._exit(3)", sandbox.Limits{}),
			statuses: only(sandbox.StatusRuntime)},
		{name: "crashes", weight: 5, call: fixed("import ctypes; ctypes.string_at(0)", sandbox.Limits{}),
			statuses: []sandbox.Status{sandbox.StatusKilled, sandbox.StatusRuntime}},
		{name: "daemon", weight: 5,
			call: fixed("import os, time\nif os.fork() == 0:\n    os.setsid()\n"+
				"    if os.fork() == 0: time.sleep(99)\n    os._exit(0)", brief),
			statuses: []sandbox.Status{sandbox.StatusOK, sandbox.StatusRuntime, sandbox.StatusProcessLimit}},
		{name: "output", weight: 3, call: fixed("while True: print('x' * 1000)", brief),
			statuses: only(sandbox.StatusOutputLimit)},
		{name: "memory", weight: 3, call: fixed("a = []\nwhile True: a.append(bytearray(1 << 20))", brief),
			statuses: []sandbox.Status{sandbox.StatusOutOfMemory, sandbox.StatusRuntime, sandbox.StatusKilled}},
		{name: "disk", weight: 2,
			call: fixed("i = 0\nwhile True:\n    i += 1\n    open(str(i), 'wb').write(bytes(1 << 20))", brief),
			statuses: []sandbox.Status{sandbox.StatusFileLimit, sandbox.StatusRuntime, sandbox.StatusTimeoutCPU,
				sandbox.StatusTimeoutWall, sandbox.StatusKilled}},
		{name: "inodes", weight: 1, call: fixed("import os\ni = 0\nwhile True:\n    i += 1\n    os.mkdir(str(i))",
			brief),
			statuses: []sandbox.Status{sandbox.StatusFileLimit, sandbox.StatusRuntime, sandbox.StatusTimeoutCPU,
				sandbox.StatusTimeoutWall}},
		{name: "loop", weight: 1, call: fixed("while True: pass", brief), statuses: only(sandbox.StatusTimeoutCPU)},
		{name: "sleep", weight: 1, call: fixed("import time; time.sleep(99)", briefer),
			statuses: only(sandbox.StatusTimeoutWall)},
		{name: "forks", weight: 1, call: fixed("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
			briefer), statuses: ended},
		{name: "threads", weight: 1,
			call: fixed("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
				briefer), statuses: ended},
	}
	if numpy {
		all = append(all, kind{name: "numpy", weight: 50, call: func(i int64) sandbox.Call {
			return sandbox.Call{Code: fmt.Sprintf("import numpy as np; print(int(np.full(2, %d).sum()) // 2)", i),
				Packages: sandbox.PackagesSympy}
		}, output: printed, statuses: only(sandbox.StatusOK)})
	}
	return all
}

// ended lists the verdicts on programs that start more than they may.
var ended = []sandbox.Status{sandbox.StatusProcessLimit, sandbox.StatusRuntime, sandbox.StatusTimeoutCPU,
	sandbox.StatusTimeoutWall, sandbox.StatusKilled, sandbox.StatusOutOfMemory}

func only(s sandbox.Status) []sandbox.Status { return []sandbox.Status{s} }

func numbered(format string) func(int64) sandbox.Call {
	return func(i int64) sandbox.Call { return sandbox.Call{Code: fmt.Sprintf(format, i)} }
}

func fixed(code string, limits sandbox.Limits) func(int64) sandbox.Call {
	return func(int64) sandbox.Call { return sandbox.Call{Code: code, Limits: limits} }
}

func printed(i int64) string { return fmt.Sprintf("%d\n", i) }

// pick draws a kind by weight.
func pick(random *rand.Rand, all []kind) kind {
	total := 0
	for _, k := range all {
		total += k.weight
	}
	at := random.IntN(total)
	for _, k := range all {
		if at < k.weight {
			return k
		}
		at -= k.weight
	}
	panic("weights do not add up")
}
