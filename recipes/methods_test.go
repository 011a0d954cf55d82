package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/method"
)

const methodsIntroduction = `# Methods

<!-- Made from the presets and the slot table of rl/method by: go test ./recipes -update -->

A method is one choice in every slot: advantage estimator, loss, aggregation, resampling, filters, reward, replay, schedule.
Recipes compose slots freely; what makes no sense together is refused with the reason ([recipes.md](recipes.md#combinations)).
The presets below set published methods to the tasks of their papers, as recipes that come with the program:

    ropewalk methods                                # this table
    ropewalk methods sampo                          # its choices, its source and what differs from it
    ropewalk methods --slots                        # every choice of every slot
    ropewalk run presets/sampo-alfworld --dry-run   # validates it, and says what cannot run yet
    ropewalk run presets/drgrpo --smoke             # the same method, small enough for two CPU cores

All of them run as smoke recipes (three steps in a small form of the world of their paper, or on ` + "`calc`" + `). If the
environment or the model of a preset is not available yet, only its smoke recipe runs.

The four dimensions are ARLArena's (Table 1).
`

// readings lists the decisions that presets name for points on which a paper, its release and other sources differ.
var readings = map[string]string{
	"SPEAR-2": "the buffer is full at N_D rows, as the paper says; the release counts rewards above P50 up to 1.5·N_D",
	"SPEAR-3": "baselines are pushed before the buffer is tested and read; the release consumes with the old ones " +
		"and stores always",
	"SPEAR-4": "a baseline is one group's mean, and the oldest leaves after the push",
	"SPEAR-5": "replay's optimiser steps follow the step's own, as released; the paper writes one objective",
	"SPEAR-6": "the covariance clip is on the replayed rows; the release has it on all rows, where it replaces " +
		"dual clip",
	"SPEAR-7": "covariances are centred over the mini-batch; the release takes the micro-batch. The paper's form is " +
		"`replay.cov_scope: group`: a position of the group, with a share of each row. Rows whose kept group has one " +
		"reward have covariances of 0 there, so that positive bounds take nothing out of them",
	"SPEAR-8": "a row's Ã is the reward of its trajectory minus P50, and Â is the row's own: a turn with a negative " +
		"advantage is not imitated, whatever the others of its trajectory have",
	"SPEAR-9":  "a void turn has neither call nor answer; the release's test never fires",
	"SPEAR-10": "the reward is ±1, the tool term and 0.1 for format, as the paper says; the release differs by task",
	"SPEAR-11": "T_warm is the paper's; the scripts never pass theirs",
	"SPEAR-14": "temperature 0.4 belongs to validation",
	"SPEAR-16": "the sum is divided by the rows and the greatest length; the release leaves out the rows",
	"RSTAR-1": "positives are drawn with weight 1/penalty, negatives uniformly; the release takes the cleanest " +
		"and the first",
	"RSTAR-12": "the third stage's problems are those that the policy at the end of the second one does not answer " +
		"eight times right (`rstar2-stage3`); in one schedule (`rstar2`) the run's own samples decide",
	"RSTAR-13": "the prompt of `rstar2_prompt` holds what the paper's prompt does: the tags, the tool's description " +
		"and the signature of its calls; its words are ours. `rstar2` shows the bare problem, for models made here",
	"RSTAR-2":  "half of the negatives, and two of each sign at least",
	"RSTAR-3":  "a call failed by its status; the release looks for the word error",
	"RSTAR-10": "token-mean: the paper's formula is lost",
	"RSTAR-11": "truncated rows are trained on, with reward 0",
	"ARLA-1":   "aggregation is explicit; the paper's Table 1 and the code differ for GSPO and SAMPO",
	"ARLA-2":   "statistics of a group run over its turns' rows, none of them doubled",
	"ARLA-3":   "the format's penalty is the invalid turn's; the paper writes the final reward's",
	"ARLA-4":   "δ is 0.003, as in the scripts; the paper gives none",
	"ARLA-5":   "masked rows stay in the denominator, as in the formula; the code shrinks it",
	"ARLA-6":   "CISPO's clip has two sides, the lower one at 0",
	"ARLA-7":   "EMPG's weights have the mean 1 over rows",
	"ARLA-8":   "GSPO's bounds are the table's, SAMPO's the scripts'",
	"ARLA-10":  "τ 1.0 and 1.05 as in the table; a script has 2.0 and 2.1",
	"ARLA-11":  "a group is informative if its rewards differ, and further tries are of new prompts",
	"ARLA-13":  "SAMPO is GSPO, GiGPO and dynamic sampling, as a later upload of the code has it",
	"ARLA-15":  "GiGPO divides by the deviation, as in the table; one script's run did not",
	"AEPO-1":   "the lower bound is 1 − ε_l",
	"AEPO-2":   "the entropy factor is linear, as eq 11 writes; Algorithm 2 has a power",
	"AEPO-3":   "the entropy factor is on; the scripts leave it off",
	"AEPO-4":   "entropies are those before the update, once",
	"AEPO-5":   "they are standardised over the group",
	"AEPO-7":   "no dual clip; the release has one at 3",
	"AEPO-8":   "all tokens keep the gradient above the upper bound",
	"AEPO-9":   "the slope is 0.2, as the paper says; the release has 0.05",
	"AEPO-10": "the base of P is drawn from U(0, 1) for each decision, as released; the paper's α has no value, and " +
		"with a fixed 0.5 every rise of the entropy would branch",
	"AEPO-12": "entropies are divided by ln V, as released. With β = 0.2 the budget of 16 then has 8 roots unless " +
		"the entropies of root and tools differ by more than 7 nats. The paper divides ΔH by V (`rollout.tree.scale: " +
		"v`), which leaves less than 0.001 of it: all groups have 8 roots, and the base of P alone decides on " +
		"branches. Its equation 5 divides nothing (`scale: nats`): 5 nats make 12 roots, and P crosses the threshold " +
		"at nearly every rise. The report counts groups by their roots",
	"AEPO-13": "an entropy is the sum over the first 20 tokens of a segment of −p ln p of the 10 likeliest tokens, " +
		"as released, because that is what inference servers give; the paper has Shannon's entropy over the vocabulary",
	"AEPO-11": "branchings in a row are counted for each chain",
	"AEPO-14": "the budget comes from monitoring, as the paper says; the release has it off",
	"AEPO-16": "sixteen trajectories from eight roots",
	"PRS-1":   "the judge's verdict is 0 or 1",
	"PRS-2":   "a process without calls is whole if its answer parses",
	"VSPO-2":  "N counts the original and the draws; ω is applied once",
	"VSPO-3":  "R_max is over the whole batch, dropped groups included",
	"VSPO-6":  "advantages use the sample deviation, value scores the population variance",
	"VSPO-8":  "rows weigh alike (eq 6)",
	"VERL-1":  "returns pass unchanged over observations; older releases start them again there",
	"VERL-5":  "a group of one has the advantage 0",
	"VERL-6":  "observations are skipped; older forks count them",
	"VERL-7":  "the value loss has the factor ½",
}

func TestMethodsPageIsUpToDate(t *testing.T) {
	rows, err := MethodTable()
	require.NoError(t, err)
	upToDate(t, filepath.Join("..", "docs", "methods.md"), []byte(methodsPage(t, rows)))
}

func methodsPage(t *testing.T, rows []MethodRow) string {
	var b strings.Builder
	b.WriteString(methodsIntroduction)
	b.WriteString("\n| method |")
	for _, d := range method.Dimensions() {
		fmt.Fprintf(&b, " %s |", d)
	}
	b.WriteString("\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| [`%s`](#%s) |", r.Method, r.Method)
		for _, d := range method.Dimensions() {
			fmt.Fprintf(&b, " %s |", r.Design[d])
		}
		b.WriteString("\n")
	}
	b.WriteString("\nGiGPO, EMPG and SAMPO compare turns, so they are not set to `tir_math`, where a solution is " +
		"one row.\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", r.Method, r.About)
		if len(r.Presets) > 1 {
			fmt.Fprintf(&b, "Presets: `%s`.\n", strings.Join(r.Presets, "`, `"))
		} else {
			fmt.Fprintf(&b, "Preset: `%s`.\n", r.Presets[0])
		}
	}
	b.WriteString("\n## Readings\n\nWhere a paper, its release and others differ, a preset's comment names the " +
		"reading taken:\n\n")
	for _, id := range readingsInOrder() {
		fmt.Fprintf(&b, "- **%s**: %s.\n", id, readings[id])
	}
	beyond, err := os.ReadFile(filepath.Join("testdata", "beyond.md"))
	require.NoError(t, err)
	b.Write(beyond)
	return b.String()
}

// readingsInOrder sorts by paper, then by number.
func readingsInOrder() []string {
	ids := []string{}
	for id := range readings {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, n, _ := strings.Cut(a, "-")
		y, m, _ := strings.Cut(b, "-")
		if x != y {
			return strings.Compare(x, y)
		}
		return strings.Compare(fmt.Sprintf("%3s", n), fmt.Sprintf("%3s", m))
	})
	return ids
}

// Every reading that a preset names is explained, and a preset names every reading that is explained.
func TestReadingsAreExplained(t *testing.T) {
	named := map[string]bool{}
	id := regexp.MustCompile(`\b(?:SPEAR|RSTAR|ARLA|AEPO|PRS|VSPO|VERL)-\d+\b`)
	for _, name := range Presets() {
		for _, m := range id.FindAllString(Comment(name), -1) {
			require.Contains(t, readings, m, name)
			named[m] = true
		}
	}
	for r := range readings {
		require.True(t, named[r], "no preset names %s", r)
	}
}

// The table has every method, with what it chooses in each dimension.
func TestMethodTable(t *testing.T) {
	rows, err := MethodTable()
	require.NoError(t, err)
	for _, r := range rows {
		require.NotEmpty(t, r.About, r.Method)
		for _, d := range method.Dimensions() {
			require.NotEmpty(t, r.Design[d], "%s: %s", r.Method, d)
		}
	}
	require.Len(t, rows, len(Methods()))
}
