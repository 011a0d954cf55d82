package stack

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// Need says which servers a command uses.
type Need struct {
	Temporal bool `json:"temporal"`
	S3       bool `json:"s3"`
	Worker   bool `json:"worker"` // implies the other two
}

// Everything is the need of a command that runs workflows.
var Everything = Need{Temporal: true, S3: true, Worker: true}

func (n Need) full() Need {
	n.Temporal, n.S3 = n.Temporal || n.Worker, n.S3 || n.Worker
	return n
}

// Ports are the preferred ports. A port that is taken is replaced by a free one. Zero means the default.
type Ports struct {
	Temporal int `json:"temporal"` // 7233
	UI       int `json:"ui"`       // 8233
	S3       int `json:"s3"`       // 7070
}

// Options describes the stack that a command needs. The zero value of every field except Need is usable.
type Options struct {
	// Root is the folder of all state; default $ROPEWALK_HOME, else .ropewalk in the working folder.
	Root string `json:"root"`
	Need Need   `json:"need"`
	// NoWorker leaves starting a worker to the user; ROPEWALK_NO_WORKER=1 does the same.
	NoWorker bool  `json:"no_worker"`
	Ports    Ports `json:"ports"`
	// Temporal is the content of temporal.yaml; nil loads it from the working folder, else uses the built-in one.
	Temporal *temporalconf.Config `json:"temporal"`
	// Supervisor and Worker are the commands of these processes. The default is this executable with "supervise" and
	// with "worker".
	Supervisor []string `json:"supervisor"`
	Worker     []string `json:"worker"`
	// Progress receives one line of text per event: a server that starts, is ready, is restarted, during Join and
	// later, from other goroutines, one at a time. May be nil.
	Progress func(line string) `json:"-"`
}

// tuning holds the times of supervision.
type tuning struct {
	startTimeout time.Duration // from a server's start until it must be healthy
	stopTimeout  time.Duration // from SIGTERM to SIGKILL
	quickDeath   time.Duration // a failure sooner than this after health counts towards giving up
	maxQuick     int           // a server is given up after this many quick failures in a row
	patience     time.Duration // a server killed again and again before it is healthy is given up after this
	backoff      time.Duration // before the first restart; doubles up to 16 ×
}

// times are the times of supervision, which tests shorten.
var times = tuning{
	startTimeout: 2 * time.Minute,
	stopTimeout:  10 * time.Second,
	quickDeath:   10 * time.Second,
	maxQuick:     4,
	patience:     10 * time.Minute,
	backoff:      250 * time.Millisecond,
}

// withDefaults fills in what the caller left empty and makes Root absolute.
func (o Options) withDefaults() (Options, error) {
	o.Root = cmp.Or(o.Root, os.Getenv("ROPEWALK_HOME"), ".ropewalk")
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return o, fmt.Errorf("resolve the state folder %s: %w", o.Root, err)
	}
	o.Root = root
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return o, badinput.Errorf("ROPEWALK_HOME: %s is a file; want a folder", root)
	}
	if v := os.Getenv("ROPEWALK_NO_WORKER"); v != "" && v != "0" {
		o.NoWorker = true
	}
	o.Need = o.Need.full()
	if o.NoWorker {
		o.Need.Worker = false
	}
	if o.Temporal == nil {
		conf, err := temporalconf.Load("")
		if err != nil {
			return o, err
		}
		o.Temporal = &conf
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find this executable: %w", err)
	}
	if len(o.Supervisor) == 0 {
		o.Supervisor = []string{self, "supervise"}
	}
	if len(o.Worker) == 0 {
		o.Worker = []string{self, "worker"}
	}
	p := o.Ports
	o.Ports = Ports{Temporal: cmp.Or(p.Temporal, 7233), UI: cmp.Or(p.UI, 8233), S3: cmp.Or(p.S3, 7070)}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}
