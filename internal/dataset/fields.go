package dataset

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Fields are the settings in a recipe of an environment whose tasks come from files.
type Fields struct {
	Train         string  `json:"train" doc:"training tasks: a file of JSON Lines, a JSON list or CSV (*.csv), also packed with gzip, Parquet or Arrow, or a folder of such files. An absolute path, s3://BUCKET/KEY (with a slash at its end for a folder), https://… or hf://datasets/OWNER/NAME@REVISION/PATH (without the path: the files of the split train). The command and every worker read it" default:"\"\""`
	TrainDigest   string  `json:"train_sha256" quiet:"true" doc:"SHA-256 of that file; of a folder, of a line with name and SHA-256 for each file. A run records it; a recipe that gives it refuses other bytes, and a remote file needs it" default:"\"\""`
	HeldOut       string  `json:"held_out" quiet:"true" doc:"held-out tasks, as train; several files with commas between them are evaluation sets, each with its own figures; empty = held_out_share of the training file" default:"\"\""`
	HeldOutDigest string  `json:"held_out_sha256" quiet:"true" doc:"as train_sha256, for each file" default:"\"\""`
	Share         float64 `json:"held_out_share" doc:"share of the training tasks that are held out where held_out names no file" default:"0.05" min:"0" max:"0.9"`
	SplitSeed     int     `json:"split_seed" quiet:"true" doc:"chooses which tasks that share consists of. It is not the run's seed, so that runs are compared on the same tasks" default:"0" min:"0" max:"1000000000"`
	Columns       string  `json:"columns" quiet:"true" doc:"where the fields of a task are in a row, as {question: problem, answer: reward_model.ground_truth}: a column, a path into a nested one, with functions after it (solution | boxed), or a text with such in braces; empty = the recognised shape of a public set, or columns of the fields' own names (docs/data.md)" default:"\"\""`
	Filter        string  `json:"filter" quiet:"true" doc:"the rows that are read, as {level: Level 4 | Level 5, extra_info.split: train, pass_rate: '> 0.2 & < 0.9'}; empty = all" default:"\"\""`
	Duplicates    string  `json:"duplicates" doc:"what becomes of a task that an earlier row holds already: refuse the file, or keep the first row. A training task that is also held out counts as one, and then the held-out row is kept" default:"refuse" enum:"refuse|first"`
	MaxMB         int     `json:"max_mb" doc:"most MiB of train and of held_out each, packed and unpacked. Their tasks are held in memory" default:"1024" min:"1" max:"1048576"`
	MaxRowKB      int     `json:"max_row_kb" doc:"most KiB of a row" default:"256" min:"1" max:"65536"`
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// The settings that name files, which are also the names of splits.
const (
	train   = "train"
	heldOut = "held_out"
)

// source is a training source without an address.
func (f Fields) source(format Format, fetch Fetch) (s source, err error) {
	s = source{split: train, answered: format.Answered, bytes: int64(f.MaxMB) << 20, row: f.MaxRowKB << 10,
		fetch: fetch}
	columns, err := textsByName("columns", f.Columns)
	if err != nil {
		return s, err
	}
	filter, err := textsByName("filter", f.Filter)
	if err == nil {
		s.plans, err = format.plans(columns, filter)
	}
	return s, err
}

// sources lists the sources, the held-out ones first, of which there may be several. It refuses settings that
// contradict each other.
func (f Fields) sources(format Format, fetch Fetch) (out []source, err error) {
	s, err := f.source(format, fetch)
	if err != nil {
		return nil, err
	}
	addresses, digests := strings.Split(f.HeldOut, ","), strings.Split(f.HeldOutDigest, ",")
	if f.HeldOutDigest == "" {
		digests = make([]string, len(addresses))
	}
	if len(digests) != len(addresses) {
		return nil, fmt.Errorf("held_out_sha256: must have a digest for each of %d files, got %d", len(addresses),
			len(digests))
	}
	for i, address := range addresses {
		held := s
		held.split, held.address, held.digest = heldOut, strings.TrimSpace(address), strings.TrimSpace(digests[i])
		if len(addresses) > 1 {
			held.set = setName(held.address)
		}
		out = append(out, held)
	}
	s.address, s.digest = f.Train, f.TrainDigest
	out = append(out, s)
	for _, s := range out {
		switch {
		case s.address == "" && s.digest != "":
			return nil, fmt.Errorf("%s_sha256: there is no file that it could be the digest of", s.split)
		case s.digest != "" && !digestForm.MatchString(s.digest):
			return nil, fmt.Errorf("%s_sha256: must be 64 hexadecimal digits in lower case, got %q", s.split, s.digest)
		case Remote(s.address) && s.digest == "" && !onHub(s.address):
			return nil, fmt.Errorf("%s: a remote file wants its digest, so that every worker reads the same bytes: "+
				"set %s_sha256 to what sha256sum says", s.split, s.split)
		}
	}
	if f.Train == "" && f.HeldOut != "" {
		return nil, fmt.Errorf("held_out: there is no training file that it could be held out of")
	}
	return out, nil
}

// revision is the revision in the address of a hub's set.
var revision = regexp.MustCompile(`@[^/]*`)

// setName names an evaluation set by its file, and by its folder where the file is named after a split.
func setName(address string) string {
	address = strings.TrimSuffix(revision.ReplaceAllString(address, ""), "/")
	name := path.Base(address)
	if splits[heldOut].MatchString(name) || splits[train].MatchString(name) {
		name = path.Base(path.Dir(address)) + "/" + name
	}
	for _, suffix := range suffixes {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// Pin reads the local files that the settings name, checks their rows, and sets their digests in the recipe's settings.
// Remote files are not read: their digests are in the recipe already. A branch of a hub's set becomes its commit.
func Pin[T any](f Fields, format Format, convert func(Row) (T, error), settings map[string]any) error {
	all, err := f.sources(format, nil)
	if err != nil || f.Train == "" {
		return err
	}
	l := loader[T]{fields: f, format: format, convert: convert, keys: map[digest]place{}}
	addresses, digests := map[string][]string{}, map[string][]string{}
	for _, s := range all {
		if onHub(s.address) {
			if s.address, err = pinHub(context.Background(), s.address); err != nil {
				return fmt.Errorf("%s: %w", s.split, err)
			}
		}
		if s.address != "" && !Remote(s.address) {
			if s.digest, err = l.read(context.Background(), s); err != nil {
				return err
			}
		}
		addresses[s.split], digests[s.split] = append(addresses[s.split], s.address), append(digests[s.split], s.digest)
	}
	set := func(name string, texts []string) {
		if text := strings.Join(texts, ","); strings.Trim(text, ",") != "" {
			settings[name] = text
		}
	}
	for split := range addresses {
		set(split, addresses[split])
		set(split+"_sha256", digests[split])
	}
	return nil
}
