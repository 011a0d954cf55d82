package rpc

import (
	"math"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// FromCall converts a call to a message. The message shares the call's bytes.
func FromCall(c sandbox.Call) *Call {
	return &Call{
		Language: c.Language, Packages: c.Packages, Code: []byte(c.Code), Stdin: []byte(c.Stdin),
		Files: fromFiles(c.Files), Collect: c.Collect, Limits: FromLimits(c.Limits), Trace: c.Trace,
	}
}

// Sandbox converts the message to a call. Malformed fields stay malformed, so that Call.Validate can name them.
func (x *Call) Sandbox() sandbox.Call {
	return sandbox.Call{
		Language: x.GetLanguage(), Packages: x.GetPackages(), Code: string(x.GetCode()), Stdin: string(x.GetStdin()),
		Files: toFiles(x.GetFiles()), Collect: x.GetCollect(), Limits: x.GetLimits().Sandbox(), Trace: x.GetTrace(),
	}
}

// FromLimits converts limits to a message; nil if no limit is set.
func FromLimits(l sandbox.Limits) *Limits {
	if l == (sandbox.Limits{}) {
		return nil
	}
	return &Limits{
		CpuNs: int64(l.CPU), WallNs: int64(l.Wall), MemoryBytes: l.MemoryBytes,
		OutputBytes: int64(l.OutputBytes), FileBytes: l.FileBytes, Processes: int64(l.Processes),
	}
}

// Sandbox converts the message to limits.
func (x *Limits) Sandbox() sandbox.Limits {
	return sandbox.Limits{
		CPU: time.Duration(x.GetCpuNs()), Wall: time.Duration(x.GetWallNs()), MemoryBytes: x.GetMemoryBytes(),
		OutputBytes: toInt(x.GetOutputBytes()), FileBytes: x.GetFileBytes(), Processes: toInt(x.GetProcesses()),
	}
}

// FromResult converts a verdict to a message.
func FromResult(r sandbox.Result) *Result {
	return &Result{
		Status: string(r.Status), ExitCode: int32(r.ExitCode), Signal: r.Signal,
		Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr), Traceback: []byte(r.Traceback), Value: []byte(r.Value),
		Files: fromFiles(r.Files),
		Timing: &Timing{
			QueueNs: int64(r.Timing.Queue), WallNs: int64(r.Timing.Wall), CpuNs: int64(r.Timing.CPU),
			PeakMemoryBytes: r.Timing.PeakMemory,
		},
	}
}

// Sandbox converts the message to a verdict.
func (x *Result) Sandbox() sandbox.Result {
	return sandbox.Result{
		Status: sandbox.Status(x.GetStatus()), ExitCode: int(x.GetExitCode()), Signal: x.GetSignal(),
		Stdout: string(x.GetStdout()), Stderr: string(x.GetStderr()), Traceback: string(x.GetTraceback()),
		Value: string(x.GetValue()),
		Files: toFiles(x.GetFiles()),
		Timing: sandbox.Timing{
			Queue: time.Duration(x.GetTiming().GetQueueNs()), Wall: time.Duration(x.GetTiming().GetWallNs()),
			CPU: time.Duration(x.GetTiming().GetCpuNs()), PeakMemory: x.GetTiming().GetPeakMemoryBytes(),
		},
	}
}

func fromFiles(files []sandbox.File) []*File {
	if len(files) == 0 {
		return nil
	}
	out := make([]*File, len(files))
	for i, f := range files {
		out[i] = &File{Name: f.Name, Content: f.Content}
	}
	return out
}

func toFiles(files []*File) []sandbox.File {
	if len(files) == 0 {
		return nil
	}
	out := make([]sandbox.File, len(files))
	for i, f := range files {
		out[i] = sandbox.File{Name: f.GetName(), Content: f.GetContent()}
	}
	return out
}

// toInt converts n to an int. Where int is narrower, it keeps the sign, and values out of range stay out of range.
func toInt(n int64) int {
	return int(min(max(n, math.MinInt), math.MaxInt))
}
