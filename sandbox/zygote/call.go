package zygote

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"golang.org/x/sys/unix"
)

const (
	// killGrace bounds how long a zygote may take to kill a child before it is killed itself.
	killGrace = 3 * time.Second
	// stragglerGrace bounds the wait for the pipes' ends once a call has ended. Only in the
	// tier "rlimits" can anything still hold them.
	stragglerGrace = time.Second
)

// scratch is what the streams read into before they append.
var scratch = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// running is one call on one zygote.
type running struct {
	zygote *process
	id     uint64
	pipes  [3]*os.File // stdout, stderr, control: the read ends
	seen   [3]stream
	drains sync.WaitGroup

	mu    sync.Mutex
	cause cause
	ended bool // the reply is there: no order to kill may reach the next call
}

// execute runs one call. An error means that the zygote is of no more use, or that ctx ended.
func (p *process) execute(ctx context.Context, call sandbox.Call, limits sandbox.Limits) (sandbox.Result, error) {
	p.calls++
	r := &running{zygote: p, id: p.calls}
	began := time.Now()
	if err := r.start(call, limits); err != nil {
		return sandbox.Result{}, err
	}
	answer, err := r.await(ctx, limits)
	r.finish()
	if err != nil {
		return sandbox.Result{}, err
	}
	if r.cause == causeCancel {
		return sandbox.Result{}, context.Cause(ctx)
	}
	o := outcome{wait: answer.wait, cpu: answer.cpu, cause: r.cause, stdout: r.seen[0], stderr: r.seen[1], control: r.seen[2]}
	if !o.started() {
		return sandbox.Result{}, fmt.Errorf("prepare call: child ended with wait status %#x, saying %q", int(o.wait), o.control.bytes)
	}
	result := o.verdict(limits)
	result.Timing = sandbox.Timing{Wall: time.Since(began), CPU: answer.cpu}
	return result, nil
}

// start makes the call's descriptors and hands them to the zygote.
func (r *running) start(call sandbox.Call, limits sandbox.Limits) error {
	var handed []int
	defer func() {
		for _, fd := range handed {
			unix.Close(fd)
		}
	}()
	req := request{kind: requestRun, id: r.id, cpuSeconds: uint32(wholeSeconds(limits.CPU) / time.Second),
		memory: uint64(limits.MemoryBytes), size: uint64(len(call.Code))}
	code, err := memoryFile(call.Code)
	if err != nil {
		return err
	}
	handed = append(handed, code)
	for i := range r.pipes {
		read, write, err := pipe()
		if err != nil {
			r.finish()
			return err
		}
		r.pipes[i], handed = read, append(handed, write)
	}
	if call.Stdin != "" {
		stdin, err := memoryFile(call.Stdin)
		if err != nil {
			r.finish()
			return err
		}
		handed, req.flags = append(handed, stdin), flagStdin
	}
	if _, _, err := r.zygote.link.WriteMsgUnix(req.encode(), unix.UnixRights(handed...), nil); err != nil {
		r.finish()
		return fmt.Errorf("send call to zygote: %w", err)
	}
	for i := range r.pipes {
		r.drains.Add(1)
		go r.drain(i, limits.OutputBytes)
	}
	return nil
}

// drain reads a pipe to its end, keeps the first limit bytes, and has the call killed at the
// first byte beyond them.
func (r *running) drain(i, limit int) {
	defer r.drains.Done()
	if i == len(r.pipes)-1 {
		limit += 2 // the record's letters
	}
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	into := &r.seen[i]
	for {
		n, err := r.pipes[i].Read(*buffer)
		room := limit - len(into.bytes)
		into.bytes = append(into.bytes, (*buffer)[:min(n, room)]...)
		if n > room && !into.overflow {
			into.overflow = true
			r.kill(causeOutput)
		}
		if err != nil {
			return
		}
	}
}

// await returns the zygote's reply, ending the call when its wall limit or ctx does.
func (r *running) await(ctx context.Context, limits sandbox.Limits) (reply, error) {
	wall := time.AfterFunc(limits.Wall, func() { r.kill(causeWall) })
	defer wall.Stop()
	defer context.AfterFunc(ctx, func() { r.kill(causeCancel) })()
	buffer := make([]byte, replySize+1)
	n, err := r.zygote.link.Read(buffer)
	if err != nil {
		return reply{}, fmt.Errorf("await zygote's reply: %w: %s", err, r.zygote.lastWords())
	}
	answer, err := decodeReply(buffer[:n])
	if err == nil && answer.id != r.id {
		err = fmt.Errorf("read reply: it is for call %d, want %d", answer.id, r.id)
	}
	return answer, err
}

// kill has the zygote end the call; the first cause stands. A zygote that does not obey in
// time is ended itself, by its link's deadline.
func (r *running) kill(why cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.cause != causeNone {
		return
	}
	r.cause = why
	r.zygote.link.SetReadDeadline(time.Now().Add(killGrace))
	if _, err := r.zygote.link.Write(request{kind: requestKill, id: r.id}.encode()); err != nil {
		r.zygote.kill()
	}
}

// finish waits for the pipes' ends and closes them.
func (r *running) finish() {
	r.mu.Lock()
	r.ended = true
	r.zygote.link.SetReadDeadline(time.Time{})
	r.mu.Unlock()
	for _, p := range r.pipes {
		if p != nil {
			p.SetReadDeadline(time.Now().Add(stragglerGrace))
		}
	}
	r.drains.Wait()
	for _, p := range r.pipes {
		if p != nil {
			p.Close()
		}
	}
}
