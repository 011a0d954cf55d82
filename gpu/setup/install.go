package setup

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/python"
)

// The engine's packages and what they need, and uv, each with the digests of its files. They are part of what the
// project tests itself with (.ci), which a test here holds them to.
var (
	//go:embed requirements.txt
	requirements []byte
	//go:embed uv.txt
	uvRequirement []byte
)

// oldestBase is the oldest interpreter that the pinned packages have files for.
var oldestBase = version{Major: 3, Minor: 11}

// stampFile in the own environment says what it was made from.
const stampFile = "stamp"

// Install makes the own environment below the folder state from a base interpreter ("": the one that ROPEWALK_PYTHON
// names, else python3), and returns its interpreter. If it was already made from the same list, nothing is installed.
// The output of uv and pip goes to log. An incomplete environment is removed and never replaces a complete one.
func Install(ctx context.Context, state, base string, log io.Writer) (Python, error) {
	state, err := filepath.Abs(state)
	if err != nil {
		return Python{}, err
	}
	dir := filepath.Join(state, Folder)
	own := candidate{interpreter(dir), "the own environment", true}
	if b, err := os.ReadFile(filepath.Join(dir, stampFile)); err == nil && string(b) == stamp() {
		if p, err := probe(ctx, own, Peft()); err == nil {
			return p, nil
		}
	}
	found, err := baseInterpreter(ctx, base)
	if err != nil {
		return Python{}, err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return Python{}, err
	}
	work, err := os.MkdirTemp(state, Folder+".new-")
	if err != nil {
		return Python{}, err
	}
	defer os.RemoveAll(work)
	i := installer{ctx: ctx, log: log, work: work}
	if err := i.make(found); err != nil {
		return Python{}, fmt.Errorf("make %s: %w", dir, err)
	}
	if err := replace(i.environment(), dir, filepath.Join(work, "old")); err != nil {
		return Python{}, err
	}
	return probe(ctx, own)
}

func stamp() string {
	h := sha256.Sum256(append(append([]byte{}, requirements...), uvRequirement...))
	return hex.EncodeToString(h[:]) + "\n"
}

// replace puts a folder in another's place, which is set aside first.
func replace(folder, place, aside string) error {
	if err := os.Rename(place, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(folder, place)
}

// baseInterpreter is what the environment is made from; it needs none of the packages.
func baseInterpreter(ctx context.Context, named string) (string, error) {
	c := candidate{named, "named", true}
	if named == "" {
		c = candidate{"python3", "python3 of PATH", true}
		if v := os.Getenv(python.Variable); v != "" {
			c = candidate{v, python.Variable + " names it", true}
		}
	}
	p, err := probe(ctx, c)
	var unfit *UnfitError
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf(
			"%w: %s (%s) is not there; install python3 (Debian: apt-get install python3 python3-venv)", ErrNoPython,
			c.path, c.source,
		)
	case err != nil && !errors.As(err, &unfit):
		return "", err
	}
	if v, err := parse(p.Version); err != nil || v.before(oldestBase) {
		return "", fmt.Errorf(
			"%s is Python %s; the pinned packages need %s or newer (--python names another)", p.Path, p.Version,
			oldestBase,
		)
	}
	return p.Path, nil
}

// installer runs the steps of an installation in a new folder.
type installer struct {
	ctx  context.Context
	log  io.Writer
	work string
}

// environment is where the environment is made. Of its files only scripts know their place, and none of these is used.
func (i installer) environment() string { return filepath.Join(i.work, "new") }

func (i installer) make(base string) error {
	lists := map[string][]byte{"requirements.txt": requirements, "uv.txt": uvRequirement}
	for name, content := range lists {
		if err := os.WriteFile(filepath.Join(i.work, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := i.run(
		"make a virtual environment (Debian: apt-get install python3-venv)", base, "-m", "venv", i.environment(),
	); err != nil {
		return err
	}
	exe := interpreter(i.environment())
	if err := i.run(
		"install uv", exe, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r",
		filepath.Join(i.work, "uv.txt"),
	); err != nil {
		return err
	}
	uv := filepath.Join(i.environment(), "bin", "uv")
	if err := i.run(
		"install the packages", uv, "pip", "install", "--python", exe, "--require-hashes", "-r",
		filepath.Join(i.work, "requirements.txt"),
	); err != nil {
		return err
	}
	if _, err := probe(i.ctx, candidate{exe, "just installed", true}, Peft()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(i.environment(), stampFile), []byte(stamp()), 0o600)
}

func (i installer) run(what, program string, args ...string) error {
	cmd := exec.CommandContext(i.ctx, program, args...)
	cmd.Stdout, cmd.Stderr = i.log, i.log
	if err := cmd.Run(); err != nil {
		if i.ctx.Err() != nil {
			return i.ctx.Err()
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
