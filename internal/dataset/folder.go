package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/hub"
)

// A folder may be a Hugging Face set: its files are named after splits (train-00000-of-00002.parquet), or are in
// folders that are (train/data-00000-of-00001.arrow).

// suffixes end the names of the files of a folder that are read. Files *.json are read where there are no others,
// because they may also describe the set.
var suffixes = []string{".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet", ".arrow", ".json"}

// splits are the words by which the names of files tell that they belong to a split.
var splits = map[string]*regexp.Regexp{
	train:   regexp.MustCompile(`(?i)(^|[^a-z])train(ing)?([^a-z]|$)`),
	heldOut: regexp.MustCompile(`(?i)(^|[^a-z])(test|testing|validation|valid|val|dev|eval)([^a-z]|$)`),
}

// choose returns the files of a folder that are read for a split, sorted: those whose names have a word of the split
// if there are any, and otherwise those whose names have no word of another one. Hidden files, files of other kinds and
// those that libraries keep as a cache are not read.
func choose(names []string, split string) []string {
	readable := readableOf(names, suffixes[:len(suffixes)-1])
	if len(readable) == 0 {
		readable = readableOf(names, suffixes)
	}
	having := func(split string, want bool) []string {
		return slices.DeleteFunc(slices.Clone(readable), func(name string) bool {
			return splits[split].MatchString(name) != want
		})
	}
	if named := having(split, true); len(named) > 0 {
		return named
	}
	return having(map[string]string{train: heldOut, heldOut: train}[split], false)
}

// readableOf returns the files of a folder whose names end in one of some suffixes, sorted.
func readableOf(names, suffixes []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool {
		hidden := strings.HasPrefix(name, ".") || strings.Contains(name, "/.") ||
			strings.HasPrefix(path.Base(name), "cache-")
		return hidden || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	})
}

// chosen is choose, for a folder that must hold files.
func (s source) chosen(names []string) ([]string, error) {
	out := choose(names, s.split)
	if len(out) == 0 {
		return nil, faultf(s.address, "the folder holds no file *%s of the split %s",
			strings.Join(suffixes, ", *"), s.split)
	}
	return out, nil
}

// folder lists the files of a local folder and of those below it.
func (s source) folder() (parts []part, err error) {
	var names []string
	err = fs.WalkDir(os.DirFS(s.address), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if names, err = s.chosen(names); err != nil {
		return nil, err
	}
	total := int64(0)
	for _, name := range names {
		p := local(filepath.Join(s.address, name), name)
		at, err := os.Stat(p.name)
		if err != nil {
			return nil, err
		}
		if total += at.Size(); total > s.bytes {
			return nil, s.tooLarge(p.name)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// remoteFolder lists the files of a folder on a server.
func (s source) remoteFolder(ctx context.Context) (parts []part, err error) {
	var listing bytes.Buffer
	p := part{open: func() (io.ReadCloser, error) { return s.fetch(ctx, s.address) }}
	if _, err := p.copy(&listing, math.MaxInt64); err != nil {
		return nil, fmt.Errorf("list %s: %w", s.address, err)
	}
	names, err := s.chosen(strings.Split(listing.String(), "\n"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		address := s.address + name
		parts = append(parts, part{name: address, base: name,
			open: func() (io.ReadCloser, error) { return s.fetch(ctx, address) }})
	}
	return parts, nil
}

// hubScheme begins the address of a set on a hub.
const hubScheme = "hf://datasets/"

func onHub(address string) bool { return strings.HasPrefix(address, hubScheme) }

// hubSet is an address hf://datasets/OWNER/NAME@REVISION/PATH. PATH is a file, a folder or a pattern.
type hubSet struct{ repository, revision, path string }

func parseHub(address string) (h hubSet, err error) {
	parts := strings.SplitN(strings.TrimPrefix(address, hubScheme), "/", 3)
	if len(parts) < 2 {
		return h, fmt.Errorf("%s is not %sOWNER/NAME@REVISION/PATH", address, hubScheme)
	}
	if h.repository, h.revision, err = hub.Parse(parts[0] + "/" + parts[1]); err != nil {
		return h, fmt.Errorf("%s: %w", address, err)
	}
	if len(parts) == 3 {
		h.path = strings.TrimSuffix(parts[2], "/")
	}
	h.revision, err = url.PathUnescape(h.revision) // refs%2Fconvert%2Fparquet
	return h, err
}

// resolve asks the hub for the files of the set.
func (h hubSet) resolve(ctx context.Context) (hub.Hub, hub.Snapshot, error) {
	server := hub.Here("")
	snapshot, err := server.Resolve(ctx, "datasets/"+h.repository, h.revision)
	return server, snapshot, err
}

// pinHub returns the address with the commit that its revision names now.
func pinHub(ctx context.Context, address string) (string, error) {
	h, err := parseHub(address)
	if err != nil || hub.IsCommit(h.revision) {
		return address, err
	}
	_, snapshot, err := h.resolve(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(hubScheme+h.repository+"@"+snapshot.Commit+"/"+h.path, "/"), nil
}

// hub lists the files of a set on a hub: the file, the folder's files, or the files that match the address's pattern.
func (s source) hub(ctx context.Context) (parts []part, err error) {
	h, err := parseHub(s.address)
	if err != nil {
		return nil, err
	}
	server, snapshot, err := h.resolve(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]hub.File{}
	var names []string
	for _, f := range snapshot.Files {
		fits, err := path.Match(h.path, f.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.address, err)
		}
		files[f.Name] = f
		answers, _ := path.Match(answersOf(h.path), f.Name)
		if below := strings.HasPrefix(f.Name, h.path+"/"); fits || below || h.path == "" || answers && s.answered {
			names = append(names, f.Name)
		}
	}
	if !slices.Contains(names, h.path) {
		if names, err = s.chosen(names); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		parts = append(parts, part{name: hubScheme + h.repository + "@" + h.revision + "/" + name, base: name,
			sha256: files[name].SHA256,
			open:   func() (io.ReadCloser, error) { return server.Open(ctx, snapshot, files[name], 0) }})
	}
	return parts, nil
}
