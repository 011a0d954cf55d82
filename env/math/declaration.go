package math

import (
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// The declarations of the environment, one for each of its names.
var (
	Plain = declare("math", "questions and answers from files", "", "boxed",
		slices.Concat(rewards, []string{"arlarena"}))
	DAPO = declare("dapo_math", "questions and answers from files, such as DAPO-Math-17K, with a code interpreter",
		"SPEAR §5.1", "hermes", rewards)
	TIR = declare("tir_math", "questions and answers from files, with Python blocks in the text, as SimpleTIR and "+
		"ARLArena run it", "ARLArena §3.2", "tir", slices.Concat([]string{"arlarena"}, rewards))
	RStar2 = declare("rstar2_math", "questions and answers from files, with rStar2-Agent's tool protocol",
		"rStar2 §4.2", "rstar2", rewards)
)

// rewards are the rewards that compare an answer with a gold.
var rewards = []string{"rstar2_outcome", "spear", "spear_math", "spear_math_qwen3", "retool", "dapo_strict"}

// declare declares the environment under one name.
func declare(name, doc, source, protocol string, rewards []string) env.Declaration {
	return env.Declaration{
		Name: name, Doc: doc, Source: source, Sandboxed: true, Listed: true, Demonstrated: true, Protocol: protocol,
		Rewards: slices.Clone(rewards), Settings: env.SettingsOf[fields](),
		Pin: func(s env.Settings) error {
			f, err := env.Read[fields](s)
			if err != nil {
				return err
			}
			return dataset.Pin(f.Fields, f.format(), f.read, s)
		},
		Wants: func(s env.Settings) string {
			if f, err := env.Read[fields](s); err != nil || f.Train != "" {
				return ""
			}
			return "train: names no file of questions; set it to a path, s3://BUCKET/KEY or https://…"
		},
		Open: func(o env.Options) (env.Environment, error) { return open(name, o) },
	}
}

// fields are the settings in a recipe.
type fields struct {
	dataset.Fields
	QuestionField string `json:"question_field" quiet:"true" doc:"the field of a row that holds the question; empty = question" default:"\"\""`
	AnswerField   string `json:"answer_field" quiet:"true" doc:"the field of a row that holds the gold; empty = answer" default:"\"\""`
}
