package zygote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

const (
	// killGrace bounds how long a zygote may take to kill a child before it is killed itself.
	killGrace = 3 * time.Second
	// quietTime is how long a call's output is left in its pipes: most calls end before, and waking for
	// each piece would cost more than they do. A call that fills its pipe first waits that long.
	quietTime = 4 * time.Millisecond
	// lookTime is how often a running call looks whether it has been cancelled.
	lookTime = 50 * time.Millisecond
)

// running is one call on one zygote. Its goroutine alone touches it.
type running struct {
	zygote   *process
	id       uint64
	limits   sandbox.Limits
	pipes    [2]int    // stdout, stderr: the read ends; −1 once closed
	found    int       // the file in memory that collected files are put into; −1 if there is none
	seen     [2]stream // what they held
	cause    cause
	until    time.Time // when the call's wall limit ends; once it is to be killed, when the zygote is
	began    time.Time
	patience *patience
}

// execute runs one call. An error means that the zygote is of no more use, that ctx ended, or errTurnOver.
func (p *process) execute(ctx context.Context, call sandbox.Call, limits sandbox.Limits, patience *patience) (sandbox.Result, error) {
	p.calls++
	began := time.Now()
	r := &running{zygote: p, id: p.calls, limits: limits, pipes: [2]int{-1, -1}, found: -1, began: began, until: began.Add(limits.Wall), patience: patience}
	defer r.closePipes()
	if err := r.start(call); err != nil {
		return sandbox.Result{}, err
	}
	answer, files, err := r.await(ctx, call.Collect)
	if err != nil {
		return sandbox.Result{}, err
	}
	r.patience.ended(r, answer.cpu)
	if r.cause == causeCancel {
		return sandbox.Result{}, context.Cause(ctx)
	}
	if r.cause == causeTurn && answer.wait.Signaled() { // else it had ended before
		return sandbox.Result{}, errTurnOver
	}
	for i := range r.pipes { // whatever wrote has ended
		r.drain(i)
	}
	if !answer.begun {
		return sandbox.Result{}, fmt.Errorf("prepare call: child ended with wait status %#x, saying %q", int(answer.wait), answer.record)
	}
	o := outcome{reply: answer, cause: r.cause, stdout: r.seen[0], stderr: r.seen[1]}
	result := o.verdict(limits)
	if result.Status != sandbox.StatusOutputLimit && result.Status != sandbox.StatusTimeoutCPU && result.Status != sandbox.StatusTimeoutWall {
		result.Files = files // of a call that was stopped, chance decides what it has written
	}
	result.Timing = sandbox.Timing{Wall: time.Since(began), CPU: answer.cpu, PeakMemory: answer.peak}
	return result, nil
}

// start makes the call's descriptors and hands them to the zygote.
func (r *running) start(call sandbox.Call) error {
	handed := make([]int, 0, 5)
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
	hand := func(flag uint32, parts ...[]byte) error {
		fd, err := memoryFile(parts...)
		if err == nil {
			handed, req.flags = append(handed, fd), req.flags|flag
		}
		return err
	}
	if call.Stdin != "" {
		err = hand(flagStdin, []byte(call.Stdin))
	}
	if err == nil && len(call.Files) > 0 {
		var contents [][]byte
		for _, f := range call.Files {
			contents = append(contents, f.Content)
		}
		err = hand(flagFiles, contents...)
	}
	if other == nil && showsNothing(call.Code) {
		req.flags |= flagNoValue
	}
	if req.code = call.Code; err == nil && len(call.Code) > mostInline {
		req.code, err = "", hand(flagCode, []byte(call.Code))
	}
	if err != nil {
		return err
	}
	given := handed
	if len(call.Collect) > 0 { // the zygote writes it, and this end reads it once the reply is there
		if r.found, err = memoryFile(); err != nil {
			return err
		}
		given, req.flags = append(slices.Clone(handed), r.found), req.flags|flagCollect
	}
	if err := r.zygote.link.send(req, given); err != nil {
		return fmt.Errorf("send call to zygote: %w", err)
	}
	return nil
}

// await returns the zygote's reply and the files that came with it. Meanwhile it keeps the pipes from
// filling, and ends the call when its output, its wall limit or ctx does.
func (r *running) await(ctx context.Context, names []string) (reply, []sandbox.File, error) {
	watched := []unix.PollFd{{Fd: int32(r.zygote.link.fd), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN},
		{Fd: int32(r.zygote.nudge.fd), Events: unix.POLLIN}}
	wait := quietTime
	for {
		left := time.Until(r.until)
		if r.cause == causeNone && r.patience.standsStill() {
			left = lookTime
		}
		if left <= 0 && r.cause != causeNone {
			r.zygote.kill()
			return reply{}, nil, fmt.Errorf("kill call: the zygote did not obey within %s: %s", killGrace, r.zygote.lastWords())
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
			r.zygote.nudge.take()
		}
		if ctx.Err() != nil {
			r.kill(causeCancel)
		}
		wait = lookTime
		if r.cause == causeNone {
			wait = min(wait, r.patience.look(r))
		}
		for i := range r.pipes {
			if !r.drain(i) {
				r.pipes[i] = closed(r.pipes[i])
			}
			watched[i+1].Fd = int32(r.pipes[i])
		}
	}
}

// milliseconds rounds up, so that a deadline is over when the wait for it is.
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
	r.found = -1 // collected closes it
	files, err := collected(found, names)
	return answer, files, err
}

// drain reads what a pipe holds, keeps the first bytes up to the limit, and has the call killed at the
// first byte beyond them. It reports whether more can come.
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
			return true // it is to end; what else it says is not kept
		}
		if n < len(buffer) {
			return true // the next read would only say that there is no more yet
		}
	}
}

// kill ends the call's processes; the first cause stands. A zygote that does not tell of their end in time
// is ended itself.
func (r *running) kill(why cause) {
	if r.cause != causeNone {
		return
	}
	r.cause, r.until = why, time.Now().Add(killGrace)
	if err := killChildren(r.zygote.command.Process.Pid); err != nil {
		r.zygote.kill()
	}
}

func (r *running) closePipes() {
	for i, fd := range r.pipes {
		r.pipes[i] = closed(fd)
	}
	r.found = closed(r.found)
}

// closed closes a descriptor, if it is one, and returns what stands for none.
func closed(fd int) int {
	if fd >= 0 {
		unix.Close(fd)
	}
	return -1
}
