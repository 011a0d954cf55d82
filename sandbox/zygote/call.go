package zygote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/syscalls"
)

const (
	// killGrace bounds how long a zygote may take to kill a child. After that the zygote itself is killed.
	killGrace = 3 * time.Second
	// quietTime is how long a call's output stays in its pipes before the first read. Most calls end sooner, and waking
	// up for each piece would cost more than the calls do. A call that fills its pipe before then has to wait.
	quietTime = 4 * time.Millisecond
	// lookTime is how often the parent checks whether a running call has been cancelled.
	lookTime = 50 * time.Millisecond
)

// running is one call on one zygote. Only the call's goroutine uses it.
type running struct {
	zygote      *process
	id          uint64
	limits      sandbox.Limits
	pipes       [2]int    // stdout, stderr: the read ends; −1 once closed
	found       int       // the memory file that collected files are written to; −1 if there is none
	seen        [2]stream // the output read so far
	cause       cause
	killReached bool      // the kill for cause reached a process of the call
	until       time.Time // end of the wall limit; after a kill, when the zygote itself is killed
	began       time.Time
	looked      time.Time     // when excuse last looked at the call
	stood       time.Duration // how long the call has been stopped, at that time
	task        *task
}

// execute runs one call. It fails if the zygote has become unusable, if ctx ends, or with errPreempted.
func (p *process) execute(ctx context.Context, call sandbox.Call, limits sandbox.Limits, task *task) (sandbox.Result,
	error) {
	p.calls++
	p.kills.Begin()
	before := countBefore(p.joined.of("memory"))
	began := time.Now()
	r := &running{zygote: p, id: p.calls, limits: limits, pipes: [2]int{-1, -1}, found: -1,
		began: began, until: began.Add(limits.Wall), looked: began, task: task}
	defer r.closePipes()
	if err := r.start(call); err != nil {
		return sandbox.Result{}, err
	}
	answer, files, err := r.await(ctx, call.Collect)
	if err != nil {
		return r.lost(ctx, before, err)
	}
	r.task.ended(r, answer.cpu)
	if r.cause == causeCancel {
		return sandbox.Result{}, context.Cause(ctx)
	}
	if r.cause == causePreempted && answer.wait.Signaled() { // otherwise it ended before the kill
		return sandbox.Result{}, errPreempted
	}
	for i := range r.pipes { // every process that could write has ended
		r.drain(i)
	}
	if !answer.begun {
		return sandbox.Result{}, fmt.Errorf("prepare call: child ended with wait status %#x, saying %q",
			int(answer.wait), answer.record)
	}
	o := outcome{reply: answer, cause: r.cause, stdout: r.seen[0], stderr: r.seen[1]}
	if o.unexplained() {
		o.memory = o.wait.Signaled() && o.wait.Signal() == unix.SIGKILL && p.ranOut(before)
		o.own = p.kills.Requested(syscalls.SignalsOf(o.endSignal())) || !p.tellsKills()
	}
	switch {
	case r.cause == causeStopped && answer.wait.Signaled():
		return sandbox.Result{}, fmt.Errorf("the call's process was stopped from outside for more than %s", mostStopped)
	case o.fromOutside():
		return sandbox.Result{}, fmt.Errorf("the call's process got a %s that neither the call nor one of its limits "+
			"explains", unix.SignalName(o.wait.Signal()))
	}
	result := o.verdict(limits)
	if result.Status != sandbox.StatusOutputLimit && result.Status != sandbox.StatusTimeoutCPU &&
		result.Status != sandbox.StatusTimeoutWall {
		result.Files = files // which files a stopped call had written is a matter of chance
	}
	result.Timing = sandbox.Timing{Wall: time.Since(began), CPU: answer.cpu, PeakMemory: answer.peak}
	if o.doubtful() {
		return result, errDoubtful
	}
	return result, nil
}

// errDoubtful comes with a verdict on a call that a signal from outside may have ended.
var errDoubtful = errors.New("a signal ended the call that may have come from outside")

// lost decides about a call whose zygote has ended or did not respond. If the call exceeded a limit, or used up the
// group's memory and so got its zygote killed, it still gets its verdict. Otherwise code could disguise its own failure
// as a broken sandbox. In all other cases lost returns err, the breakage.
func (r *running) lost(ctx context.Context, before outOfMemory, err error) (sandbox.Result, error) {
	p := r.zygote
	p.unusable = true
	p.kill()
	if ctx.Err() != nil {
		return sandbox.Result{}, context.Cause(ctx)
	}
	o := outcome{reply: reply{wait: unix.WaitStatus(unix.SIGKILL)}, cause: r.cause, stdout: r.seen[0],
		stderr: r.seen[1]}
	o.memory = p.ranOut(before)
	switch {
	case o.memory, r.cause == causeOutput, r.killReached && r.cause == causeWall:
		result := o.verdict(r.limits)
		result.Timing = sandbox.Timing{Wall: time.Since(r.began)}
		return result, nil
	case r.killReached && r.cause == causePreempted:
		return sandbox.Result{}, errPreempted
	}
	return sandbox.Result{}, err
}

// start creates the call's descriptors and sends them to the zygote with the request.
func (r *running) start(call sandbox.Call) error {
	handed := make([]int, 0, 6)
	defer func() {
		for _, fd := range handed {
			unix.Close(fd)
		}
	}()
	other, err := r.zygote.plan.interpreter(call.Language)
	if err != nil {
		return err
	}
	req := request{id: r.id, cpuSeconds: uint32(wholeSeconds(r.limits.CPU) / time.Second),
		processes: uint32(r.limits.Processes), memory: uint64(r.limits.MemoryBytes), file: uint64(r.limits.FileBytes)}
	if req.extra, err = extraOf(call, other); err != nil {
		return err
	}
	for i := range r.pipes {
		ends, err := pipe()
		if err != nil {
			return err
		}
		r.pipes[i], handed = ends[0], append(handed, ends[1])
	}
	runner := func(flag uint32, parts ...[]byte) error {
		fd, err := memoryFile(parts...)
		if err == nil {
			handed, req.flags = append(handed, fd), req.flags|flag
		}
		return err
	}
	if call.Stdin != "" {
		err = runner(flagStdin, []byte(call.Stdin))
	}
	if err == nil && len(call.Files) > 0 {
		var contents [][]byte
		for _, f := range call.Files {
			contents = append(contents, f.Content)
		}
		err = runner(flagFiles, contents...)
	}
	if other == nil && showsNothing(call.Code) {
		req.flags |= flagNoValue
	}
	if req.code = call.Code; err == nil && len(call.Code) > mostInline {
		req.code, err = "", runner(flagCode, []byte(call.Code))
	}
	if err == nil && len(call.Collect) > 0 {
		var names []byte
		if names, err = json.Marshal(call.Collect); err == nil {
			err = runner(flagCollect, names)
		}
	}
	if err != nil {
		return err
	}
	given := handed
	if len(call.Collect) > 0 { // the zygote writes to it; the parent reads it after the reply
		if r.found, err = memoryFile(); err != nil {
			return err
		}
		given = append(slices.Clone(handed), r.found)
	}
	if err := r.zygote.link.send(req, given); err != nil {
		return fmt.Errorf("send call to zygote: %w", err)
	}
	return nil
}

// await returns the zygote's reply and the collected files. While it waits, it drains the pipes, and it kills the call
// when the output limit or the wall limit is reached or ctx ends.
func (r *running) await(ctx context.Context, names []string) (reply, []sandbox.File, error) {
	watched := []unix.PollFd{{Fd: int32(r.zygote.link.fd), Events: unix.POLLIN},
		{Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN},
		{Fd: int32(r.zygote.wakeup.fd), Events: unix.POLLIN}}
	wait := quietTime
	for {
		left := time.Until(r.until)
		if r.cause == causeNone && r.task.paused() {
			left = lookTime
		}
		if left <= 0 && r.cause != causeNone {
			r.zygote.kill()
			return reply{}, nil, fmt.Errorf("kill call: the zygote did not obey within %s: %s", killGrace,
				r.zygote.lastWords())
		}
		if left <= 0 {
			r.kill(causeWall)
			continue
		}
		if _, err := unix.Poll(watched, milliseconds(min(wait, left))); err != nil && err != unix.EINTR {
			return reply{}, nil, fmt.Errorf("watch call: %w", err)
		}
		if watched[0].Revents != 0 {
			return r.reply(names)
		}
		if watched[3].Revents != 0 {
			r.zygote.wakeup.clear()
		}
		if ctx.Err() != nil {
			r.kill(causeCancel)
		}
		r.excuse()
		wait = lookTime
		if r.cause == causeNone {
			wait = min(wait, r.task.check(r))
		}
		for i := range r.pipes {
			if !r.drain(i) {
				r.pipes[i] = closed(r.pipes[i])
			}
			watched[i+1].Fd = int32(r.pipes[i])
		}
	}
}

// milliseconds rounds up, so that a wait for a deadline ends after the deadline.
func milliseconds(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }

func (r *running) reply(names []string) (reply, []sandbox.File, error) {
	packet, err := r.zygote.link.receive()
	if err != nil {
		return reply{}, nil, fmt.Errorf("await zygote's reply: %w: %s", err, r.zygote.lastWords())
	}
	answer, err := decodeReply(packet)
	if err == nil && answer.id != r.id {
		err = fmt.Errorf("read reply: it is for call %d, want %d", answer.id, r.id)
	}
	if err != nil || r.found < 0 {
		return answer, nil, err
	}
	found := r.found
	r.found = -1 // collected closes the descriptor
	files, err := collected(found, names)
	return answer, files, err
}

// drain reads the content of a pipe and keeps the bytes up to the limit. At the first byte beyond the limit it kills
// the call. It reports whether more output can come.
func (r *running) drain(i int) bool {
	if r.pipes[i] < 0 {
		return false
	}
	into, buffer := &r.seen[i], r.zygote.scratch[:]
	for {
		n, err := unix.Read(r.pipes[i], buffer)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil || n == 0:
			return false
		}
		room := r.limits.OutputBytes - len(into.bytes)
		into.bytes = append(into.bytes, buffer[:min(n, room)]...)
		if n > room && !into.overflow {
			into.overflow = true
			r.kill(causeOutput)
		}
		if into.overflow {
			return true // the call is being killed; the rest of its output is dropped
		}
		if n < len(buffer) {
			return true // another read would only return EAGAIN
		}
	}
}

// kill ends the call's processes. Only the first cause counts. If the zygote does not report their end in time, await
// kills the zygote.
func (r *running) kill(why cause) {
	if r.cause != causeNone {
		return
	}
	r.cause, r.until = why, time.Now().Add(killGrace)
	met, err := killChildren(r.zygote.command.Process.Pid)
	r.killReached = met > 0
	r.zygote.thaw() // after the kill, so that no process runs in between
	if err != nil {
		r.zygote.kill()
	}
}

func (r *running) closePipes() {
	for i, fd := range r.pipes {
		r.pipes[i] = closed(fd)
	}
	r.found = closed(r.found)
}

// closed closes a descriptor if it is open, and returns −1.
func closed(fd int) int {
	if fd >= 0 {
		unix.Close(fd)
	}
	return -1
}
