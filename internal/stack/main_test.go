package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary run as the other processes of a stack: supervisors, the worker, a command that holds
// a lease, and servers that misbehave.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "versitygw" {
		fmt.Fprintln(os.Stderr, playServer(os.Args))
		os.Exit(1)
	}
	times = testTuning
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := play(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playServer answers every request at the address after --port.
func playServer(args []string) error {
	at := slices.Index(args, "--port")
	if at < 0 || at+1 == len(args) {
		return errors.New("no --port")
	}
	return http.ListenAndServe(args[at+1], http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

func play(ctx context.Context, role string) error {
	switch role {
	case "supervise":
		return Supervise(ctx)
	case "worker":
		return playWorker(ctx)
	case "stubborn": // a worker that ignores SIGTERM, and notes it
		if err := WorkerReady(); err != nil {
			return err
		}
		<-ctx.Done()
		if err := os.WriteFile(filepath.Join(os.Getenv("ROPEWALK_HOME"), "worker.ignored"), nil, 0o600); err != nil {
			return err
		}
		select {}
	case "crashing": // a worker that fails each time after its supervisor has found it healthy
		before := timesHealthy()
		if err := WorkerReady(); err != nil {
			return err
		}
		for timesHealthy() == before && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		return errors.New("index out of range")
	case "broken":
		return errors.New("cannot open the engine: no such file")
	case "hog": // keeps 64 MiB until it is killed
		block := bytes.Repeat([]byte{1}, 64<<20)
		fmt.Println("full", block[len(block)-1])
		<-ctx.Done()
		runtime.KeepAlive(block)
		return nil
	case "greet": // listens, and says where
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		<-ctx.Done()
		return l.Close()
	case "join": // a command: joins, says so, leaves on SIGTERM
		return playCommand(ctx)
	}
	return fmt.Errorf("unknown role %s", role)
}

// timesHealthy returns how often the supervisor has found its worker healthy.
func timesHealthy() int {
	log, _ := os.ReadFile(layout{os.Getenv("ROPEWALK_HOME")}.supervisorLog())
	return strings.Count(string(log), `msg="server healthy" server=worker`)
}

// playWorker does what a real worker does: it records its environment and starts children in their own groups.
func playWorker(ctx context.Context) error {
	home := os.Getenv("ROPEWALK_HOME")
	env := strings.Join(os.Environ(), "\n")
	if err := os.WriteFile(filepath.Join(home, "worker.env"), []byte(env), 0o600); err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, "worker.child"), fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
		return err
	}
	if err := WorkerReady(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func playCommand(ctx context.Context) error {
	l, err := Join(context.Background(), testOptions(os.Getenv("ROPEWALK_HOME")))
	if err != nil {
		return err
	}
	fmt.Println("joined", l.Addresses().Temporal, l.Addresses().S3Endpoint)
	select {
	case <-ctx.Done():
	case <-l.Done():
		return l.Err()
	}
	return l.Close()
}

var testTuning = tuning{startTimeout: time.Minute, stopTimeout: 8 * time.Second, quickDeath: 5 * time.Second,
	maxQuick: 3, patience: time.Minute, backoff: 50 * time.Millisecond}

func testOptions(root string) Options {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Options{Root: root, Need: Everything, Supervisor: []string{self, "supervise"},
		Worker: []string{self, "worker"}}
}
