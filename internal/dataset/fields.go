package dataset

import (
	"context"
	"fmt"
	"regexp"
)

// Fields are the settings in a recipe of an environment whose tasks come from files.
type Fields struct {
	Train         string  `json:"train" doc:"file of training tasks: an absolute path, s3://BUCKET/KEY or https://…; JSON Lines or CSV (*.csv), also packed with gzip, or Parquet. A path may also be a folder of *.jsonl, *.csv, both with .gz, and *.parquet. The command and every worker read it" default:"\"\""`
	TrainDigest   string  `json:"train_sha256" quiet:"true" doc:"SHA-256 of that file; of a folder, of a line with name and SHA-256 for each file. A run records it; a recipe that gives it refuses other bytes, and a remote file needs it" default:"\"\""`
	HeldOut       string  `json:"held_out" quiet:"true" doc:"file of held-out tasks, as train; empty = held_out_share of the training file" default:"\"\""`
	HeldOutDigest string  `json:"held_out_sha256" quiet:"true" doc:"as train_sha256" default:"\"\""`
	Share         float64 `json:"held_out_share" doc:"share of the training tasks that are held out where held_out names no file" default:"0.05" min:"0" max:"0.9"`
	SplitSeed     int     `json:"split_seed" quiet:"true" doc:"chooses which tasks that share consists of. It is not the run's seed, so that runs are compared on the same tasks" default:"0" min:"0" max:"1000000000"`
	Duplicates    string  `json:"duplicates" doc:"what becomes of a task that an earlier row holds already: refuse the file, or keep the first row. A training task that is also held out counts as one, and then the held-out row is kept" default:"refuse" enum:"refuse|first"`
	MaxMB         int     `json:"max_mb" doc:"most MiB of train and of held_out each, packed and unpacked. Their tasks are held in memory" default:"1024" min:"1" max:"1048576"`
	MaxRowKB      int     `json:"max_row_kb" doc:"most KiB of a row" default:"256" min:"1" max:"65536"`
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check refuses settings that contradict each other.
func (f Fields) check() error {
	for _, s := range []struct{ name, address, digest string }{
		{"train", f.Train, f.TrainDigest}, {"held_out", f.HeldOut, f.HeldOutDigest},
	} {
		switch {
		case s.address == "" && s.digest != "":
			return fmt.Errorf("%s_sha256: there is no file that it could be the digest of", s.name)
		case s.digest != "" && !digestForm.MatchString(s.digest):
			return fmt.Errorf("%s_sha256: must be 64 hexadecimal digits in lower case, got %q", s.name, s.digest)
		case Remote(s.address) && s.digest == "":
			return fmt.Errorf("%s: a remote file wants its digest, so that every worker reads the same bytes: set "+
				"%s_sha256 to what sha256sum says", s.name, s.name)
		}
	}
	if f.Train == "" && f.HeldOut != "" {
		return fmt.Errorf("held_out: there is no training file that it could be held out of")
	}
	return nil
}

func (f Fields) source(address, digest string, fetch Fetch) source {
	return source{address: address, digest: digest, bytes: int64(f.MaxMB) << 20, row: f.MaxRowKB << 10, fetch: fetch}
}

// Pin reads the local files that the settings name, checks their rows, and sets their digests in the recipe's settings.
// Remote files are not read: their digests are in the recipe already.
func Pin[T any](f Fields, format Format, convert func(Row) (T, error), settings map[string]any) error {
	if err := f.check(); err != nil || f.Train == "" {
		return err
	}
	l := loader[T]{fields: f, format: format, convert: convert}
	for _, s := range []struct{ name, address, digest string }{
		{"held_out", f.HeldOut, f.HeldOutDigest}, {"train", f.Train, f.TrainDigest},
	} {
		if s.address == "" || Remote(s.address) {
			continue
		}
		digest, err := l.read(context.Background(), s.name, f.source(s.address, s.digest, nil))
		if err != nil {
			return err
		}
		settings[s.name+"_sha256"] = digest
	}
	return nil
}
