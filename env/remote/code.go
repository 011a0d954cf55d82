package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// CodeError is an error of the user's own Python code: it does not load, or it raised.
type CodeError struct {
	err   error
	loads bool // the code was loaded, and raised
}

// Error implements error.
func (e CodeError) Error() string { return e.err.Error() }

// Unwrap returns the error that it wraps.
func (e CodeError) Unwrap() error { return e.err }

// unloadable reports whether an error is that of code that does not load.
func unloadable(err error) bool {
	var e CodeError
	return errors.As(err, &e) && !e.loads
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// errEdited ends a process whose code differs from its files.
var errEdited = errors.New("its Python code was edited")

// code is the user's code that a process runs.
type code struct {
	interpreter string
	module      string        // package:name
	text        string        // of the module, if it is no file
	path        string        // a folder that modules are also loaded from; "" = none
	digest      string        // what the recipe wants it to have; "" = any
	limit       time.Duration // of a call; loading may take longer
}

// source is a file that a process imported from the folder of its code.
type source struct {
	Path   string `json:"path"`
	Name   string `json:"name"` // relative to that folder
	Digest string `json:"sha256"`
	// same is when the file's status changed last before its bytes were found to be the same.
	same syscall.Timespec
}

// tick is longer than what clocks of file systems measure in: a file that changed so long ago has a later time once it
// changes again.
const tick = 2 * time.Second

// edited reports whether the file holds other bytes now, or is gone.
func (s *source) edited() bool {
	info, err := os.Stat(s.Path)
	if err != nil {
		return true
	}
	changed := info.Sys().(*syscall.Stat_t).Ctim
	if changed == s.same {
		return false
	}
	text, err := os.ReadFile(s.Path)
	if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != s.Digest {
		return true
	}
	if time.Since(time.Unix(changed.Unix())) > tick {
		s.same = changed
	}
	return false
}

// listing has a line for each file, as sha256sum prints them.
func listing(files []*source) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b *source) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Path, b.Path))
	})
	var lines strings.Builder
	for _, f := range files {
		fmt.Fprintf(&lines, "%s  %s\n", f.Digest, f.Name)
	}
	return lines.String()
}

// load imports the code unless that is done. The caller holds the turn.
func (p *process) load(ctx context.Context) error {
	if p.loaded {
		return nil
	}
	request := map[string]any{"do": "load", "module": p.code.module, "path": p.code.path, "text": p.code.text}
	_, err := p.send(ctx, max(openTime, p.code.limit), request)
	if raised := (CodeError{}); errors.As(err, &raised) {
		return CodeError{err: fmt.Errorf("load %s: %w", p.code.module, raised.err)}
	}
	if err != nil {
		return err
	}
	if got := digestOf(listing(p.files)); p.code.digest != "" && got != p.code.digest {
		return CodeError{err: badinput.Errorf("the code of %s has the digest %s, and the recipe wants %s",
			p.code.module, got, p.code.digest)}
	}
	p.loaded = true
	return nil
}

// digestOf is the digest of code with a listing: that of its file, or of the listing of several files.
func digestOf(listing string) string {
	if strings.Count(listing, "\n") == 1 {
		return listing[:2*sha256.Size]
	}
	sum := sha256.Sum256([]byte(listing))
	return hex.EncodeToString(sum[:])
}

// current loads the code and returns the listing of the files that were imported so far.
func (p *process) current(ctx context.Context) (files string, err error) {
	err = p.inTurn(ctx, func() error {
		files = listing(p.files)
		return nil
	})
	return files, err
}

// codeOf returns the listing of a keeper's code, which it loads if necessary.
func codeOf(ctx context.Context, k *keeper[*process]) (string, error) {
	return inProcess(ctx, k, func(p *process) (string, error) { return p.current(ctx) })
}

// inProcess does something in a keeper's process, and again if the process is lost.
func inProcess[T any](ctx context.Context, k *keeper[*process], do func(*process) (T, error)) (got T, err error) {
	for try := 1; ; try++ {
		at, err := k.running(time.Now())
		if err != nil {
			return got, err
		}
		got, err = do(at)
		at.count(-1)
		if err == nil {
			k.opened()
		}
		if try == tries || !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return got, err
		}
	}
}

// Edited names the files that have other digests in two listings of code.
func Edited(before, now string) (names []string) {
	was := map[string]string{}
	for line := range strings.Lines(before) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		was[name] = digest
	}
	for line := range strings.Lines(now) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if old, ok := was[name]; ok && old != digest {
			names = append(names, name)
		}
	}
	return names
}
