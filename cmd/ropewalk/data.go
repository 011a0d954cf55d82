package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/pretrained"
)

func dataCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "check files of tasks before a run reads them"}
	cmd.AddCommand(dataCheckCommand(con))
	return cmd
}

type dataCheckOptions struct {
	environment, tokenizer string
	columns, filter        map[string]string
	against                []string
	rows                   int
}

func dataCheckCommand(con *console) *cobra.Command {
	o := dataCheckOptions{}
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "show what a run would read of a file of tasks",
		Long: "check reads a file or a folder of tasks as a run does (docs/data.md), and prints its columns\n" +
			"with their types, the first tasks, how answers are compared with the golds, repeated questions,\n" +
			"lengths, and what is shared with evaluation sets. FILE is a path or an address: s3://BUCKET/KEY (with\n" +
			"the keys of the S3 server in the environment, as a worker has them), https://… or\n" +
			"hf://datasets/OWNER/NAME@REVISION/PATH. If a run would refuse rows, they are listed and the exit code\n" +
			"is 2.",
		Example: "  ropewalk data check gsm8k/train.jsonl --against gsm8k/test.jsonl\n" +
			"  ropewalk data check train.parquet --columns question=problem,answer=reward_model.ground_truth",
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.check(cmd, con, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.environment, "environment", "math", "read the tasks of this environment: math, chat, qa, functions "+
		"or code")
	f.StringToStringVar(&o.columns, "columns", nil, "where the fields of a task are, as `FIELD=COLUMN,…`")
	f.StringToStringVar(&o.filter, "filter", nil, "the rows that are read, as `COLUMN=CONDITION,…`")
	f.StringSliceVar(&o.against, "against", nil, "evaluation sets in the same form, as `FILE,…`")
	f.StringVar(&o.tokenizer, "tokenizer", "", "count lengths in the tokens of the model in this `FOLDER`")
	f.IntVar(&o.rows, "rows", 10, "show this many tasks and faults")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func (o dataCheckOptions) check(cmd *cobra.Command, con *console, file string) error {
	d, known := environments.Named(o.environment)
	if !known || d.Rows == nil {
		var names []string
		for _, e := range environments.All {
			if e.Rows != nil {
				names = append(names, e.Name)
			}
		}
		return badInput("--environment: must be one of %s, got %s", strings.Join(names, ", "), o.environment)
	}
	x := curation.Examiner{Declaration: d, Settings: dataset.Lenient(), Fetch: remoteFiles, Shown: o.rows}
	for name, of := range map[string]map[string]string{"columns": o.columns, "filter": o.filter} {
		if len(of) > 0 {
			text, err := json.Marshal(of)
			if err != nil {
				return err
			}
			x.Settings[name] = string(text)
		}
	}
	if o.tokenizer != "" {
		model, err := pretrained.Describe(o.tokenizer)
		if err != nil {
			return badInput("--tokenizer: %w", err)
		}
		x.Tokens = model.Tokens.Encode
	}
	all := append(slices.Clone(o.against), file)
	for i, path := range all {
		if absolute, err := filepath.Abs(path); err == nil && !dataset.Remote(path) {
			all[i] = absolute
		}
	}
	x.Against = all[:len(o.against)]
	found, err := x.Examine(cmd.Context(), all[len(o.against)])
	if err != nil {
		return badinput.Of(err)
	}
	if err := con.show(found, found.Write); err != nil {
		return err
	}
	if found.Bad > 0 {
		return badInput("%s: %d of %d rows cannot be read", file, found.Bad, found.Rows)
	}
	return nil
}
