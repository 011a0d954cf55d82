package math

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// The declarations of the environment, one for each of its names.
var (
	Plain = declare("math", "questions and answers from files", "", "boxed",
		slices.Concat(rewards, []string{"arlarena", "last_number"}), withGold)
	Chat = asked(declare("chat", "questions with one right answer each, from files, for a model's own chat template",
		"", "chat", []string{"last_number", "rstar2_outcome", "exact_match", "f1"}, withGold))
	QA = asked(declare(qa, "questions whose answers are compared by their words, from files", "", "chat",
		[]string{"exact_match", "f1"}, withGolds))
	Calls = asked(declare(calling, "questions that calls of the row's own functions answer, from files such as BFCL",
		"BFCL (Patil et al. 2025)", "chat", []string{"calls"}, withFunctions))
	DAPO = declare("dapo_math", "questions and answers from files, such as DAPO-Math-17K, with a code interpreter",
		"SPEAR §5.1", "hermes", rewards, withGold)
	TIR = declare("tir_math", "questions and answers from files, with Python blocks in the text, as SimpleTIR and "+
		"ARLArena run it", "ARLArena §3.2", "tir", slices.Concat([]string{"arlarena"}, rewards), withGold)
	RStar2 = declare("rstar2_math", "questions and answers from files, with rStar2-Agent's tool protocol",
		"rStar2 §4.2", "rstar2", rewards, withGold)
)

// qa is the name of the environment whose questions may have several golds.
const qa = "qa"

// rewards are the rewards that compare an answer with a gold.
var rewards = []string{"rstar2_outcome", "spear", "spear_math", "spear_math_qwen3", "retool", "dapo_strict"}

// declare declares the environment under one name.
func declare(name, doc, source, protocol string, rewards []string, k kind) env.Declaration {
	return env.Declaration{
		Name: name, Doc: doc, Source: source, Sandboxed: true, Listed: true, Demonstrated: true, Protocol: protocol,
		Rewards: slices.Clone(rewards), Settings: env.SettingsOf[dataset.Fields](),
		Pin: func(s env.Settings) error {
			f, err := env.Read[dataset.Fields](s)
			if err != nil {
				return err
			}
			return dataset.Pin(f, k.format, k.read, s)
		},
		Rows: func(ctx context.Context, o env.Options, file string, each func(env.FileRow)) (string, error) {
			f, err := env.Read[dataset.Fields](o.Settings)
			if err != nil {
				return "", err
			}
			return dataset.Look(ctx, f, file, k.format, o.Fetch, k.read,
				func(r dataset.Row, q question, fault error) {
					row := env.FileRow{Number: r.Number, Shape: r.Shape, Cells: r.Cells, Fault: fault}
					if fault == nil {
						row.Task, row.Fault = q.Task()
					}
					each(row)
				})
		},
		Wants: func(s env.Settings) string {
			if f, err := env.Read[dataset.Fields](s); err != nil || f.Train != "" {
				return ""
			}
			return "train: names no file of questions; set it to a path, s3://BUCKET/KEY or https://…"
		},
		Open: func(o env.Options) (env.Environment, error) { return k.open(name, o) },
	}
}

// asked makes an environment one for published models, which answer without tools unless the recipe names them.
func asked(d env.Declaration) env.Declaration {
	d.Tools, d.Demonstrated, d.Golds = []string{}, false, d.Name == qa
	if d.Name == calling {
		d.Functions = functionsOfTask
	}
	return d
}
