package stages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// The declarations hold together: each says what it must, and names only what is declared before it.
func TestDeclarations(t *testing.T) {
	names, activities := map[string]bool{}, map[string]bool{}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			require.False(t, names[s.Name], "declared twice")
			require.NotEmpty(t, s.Doc)
			require.NotEmpty(t, s.Activities)
			for _, r := range s.Reads {
				require.True(t, names[r.Stage], "reads %s, which does not come before it", r.Stage)
				from, _ := Of(r.Stage)
				for _, table := range r.Tables {
					require.Contains(t, from.Writes, table)
				}
			}
			for _, table := range s.Writes {
				require.NoError(t, table.Valid())
			}
			require.Equal(t, s.When == nil, s.If == "", "a condition, in code and in words")
			replayed := len(s.Recipe) > 0
			require.Equal(t, s.Pure || s.Name == schema.StageUpdate, replayed, "what a replay can run says what it "+
				"reads of the recipe")
			if replayed {
				require.Empty(t, s.Instead)
				require.Equal(t, Step, s.Phase)
			} else if s.Phase == Step && !s.Unread {
				require.NotEmpty(t, s.Instead, "why it cannot be replayed")
			}
			require.Contains(t, []string{"", "rollout", "sandbox", "reward", "update"}, s.Column)
		})
		names[s.Name] = true
	}
	for _, a := range Activities() {
		require.False(t, activities[a.Name], "activity %s is declared twice", a.Name)
		activities[a.Name] = true
	}
}

// Every table of the record is some stage's, and readers know which one of a head's.
func TestEveryTableIsWritten(t *testing.T) {
	for _, table := range append(schema.Tables(), schema.Batch, schema.ReplayBatch, schema.Documents) {
		writes := func(s Stage) bool { return slices.Contains(s.Writes, table) }
		require.True(t, slices.ContainsFunc(All(), writes), table)
	}
	require.Equal(t, schema.StageResample, Maker(schema.Selection), "the later one of two")
	require.Equal(t, schema.StageAssemble, Maker(schema.Trajectories))
	require.Equal(t, schema.StageRollout, Maker(schema.Imported), "an import commits its rows as a rollout")
	for _, table := range []schema.Table{schema.Evaluations, schema.EvaluationTurns, schema.Timings, schema.Documents} {
		require.Empty(t, Maker(table), "heads do not name %s", table)
	}
}

func TestOrders(t *testing.T) {
	require.Equal(t, []string{"reward", "resample", "advantage", "buffer"}, Pure())
	require.Equal(t, append(Pure(), "update"), Replayable())
	require.Equal(t, []string{"rollout", "sandbox", "assemble", "grade", "judge", "function", "reward"}, Sharded())
	grade, ok := Of(schema.StageGrade)
	require.True(t, ok)
	require.True(t, grade.Optional())
	require.True(t, grade.Runs(Needs{Grade: true}))
	require.False(t, grade.Runs(Needs{Logprobs: true, ReplayBuffer: true}))
	_, ok = Of("polish")
	require.False(t, ok)
}

// The marks around what DESIGN.md takes from the declarations.
const (
	begin = "<!-- Made from schema/stages by: go test ./schema/stages -update -->\n"
	end   = "<!-- end of the stages -->\n"
)

// DESIGN.md's table of stages says what the declarations say.
func TestDesignListsTheStages(t *testing.T) {
	replaceBetween(t, filepath.Join("..", "..", "DESIGN.md"), begin, end, designTable())
}

// replaceBetween compares the text between two marks of a file with what is derived, or writes it with -update.
func replaceBetween(t *testing.T, path, begin, end, made string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no mark %q", path, begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no mark %q", path, end)
	upToDate(t, path, before+begin+made+end+after)
}

// The specification of the format lists the stages with what they read and commit, and says in which stage's manifests
// each table is.
func TestSpecificationListsTheStages(t *testing.T) {
	path := filepath.Join("..", "README.md")
	replaceBetween(t, path, begin, end, stagesTable())
	visible := "<!-- Made from visible.json by: go test ./schema/stages -update -->\n"
	replaceBetween(t, path, visible, "<!-- end of the tables' stages -->\n", visibleTable(t))
}

func stagesTable() string {
	var b strings.Builder
	b.WriteString("\n| stage | what it does | divided by | reads | commits |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range All() {
		if s.Unread && len(s.Writes) == 0 {
			continue
		}
		parts := map[Parts]string{Shards: "shards", Turns: "shards and turns"}[s.Parts]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.Name, s.Doc, parts, s.inputs(), joined(s.Writes, s.Commits))
	}
	return b.String() + "\n"
}

// visibleTable lists the tables with the stages of visible.json.
func visibleTable(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "python", "ropewalk", "visible.json"))
	require.NoError(t, err)
	var visible struct {
		InHeads     map[schema.Table][]string `json:"in_heads"`
		WithoutHead map[schema.Table]struct {
			Stage  string `json:"stage"`
			Prefix string `json:"stage_prefix"`
		} `json:"without_head"`
	}
	require.NoError(t, json.Unmarshal(data, &visible))
	var b strings.Builder
	b.WriteString("\n| table | its stage in a head |\n| --- | --- |\n")
	for _, d := range schema.TableDocs() {
		where := strings.Join(visible.InHeads[d.Table], ", else ")
		if w, ok := visible.WithoutHead[d.Table]; ok {
			where = "no head names it: " + w.Stage
			if w.Prefix != "" {
				where = "no head names it: every stage whose name begins with " + w.Prefix
			}
		}
		require.NotEmpty(t, where, d.Table)
		fmt.Fprintf(&b, "| %s | %s |\n", d.Table, where)
	}
	return b.String() + "\n"
}

func designTable() string {
	var b strings.Builder
	b.WriteString("\n| stage | what it does | activity (queue) |\n| --- | --- | --- |\n")
	for _, s := range All() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, s.Doc, s.where())
	}
	for _, a := range apart {
		fmt.Fprintf(&b, "| – | %s | %s (`%s`) |\n", a.Doc, a.Name, a.Queue)
	}
	return b.String() + "\n"
}

// where says which activities do the stage, how it is divided, and when it runs.
func (s Stage) where() string {
	var parts []string
	for _, a := range s.Activities {
		parts = append(parts, fmt.Sprintf("%s (`%s`)", a.Name, a.Queue))
	}
	text := strings.Join(parts, ", ") + map[Parts]string{Shards: ", a shard", Turns: ", one turn of a shard"}[s.Parts]
	if s.If != "" {
		text += "; only if " + s.If
	}
	return text
}

func (s Stage) inputs() string {
	var tables []schema.Table
	for _, r := range s.Reads {
		tables = append(tables, r.Tables...)
	}
	return joined(tables, s.Also)
}

// joined lists tables, then what is said in words.
func joined(tables []schema.Table, words string) string {
	var parts []string
	for _, t := range tables {
		if t == schema.Documents && words != "" {
			continue // the words name the document
		}
		parts = append(parts, "`"+string(t)+"`")
	}
	text := strings.Join(parts, ", ")
	if text != "" && words != "" {
		text += "; "
	}
	return text + words
}
