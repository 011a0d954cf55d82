package sql_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/sql"
)

// TestFormulasAreMarked writes texts that spreadsheets would run, and what only looks like them.
func TestFormulasAreMarked(t *testing.T) {
	rows := [][]any{{"=1+1", int64(-5)}, {"+cmd|' /C calc'!A0", -0.5}, {"-1+2", nil}, {"@SUM(A1)", true},
		{"\t=1", "-5"},
		{"\r=1", "+1e3"}, {"＝1", "a=1"}, {"", " =1"}}
	var b bytes.Buffer
	require.NoError(t, sql.Result{Columns: []string{"=a", "b"}, Rows: rows}.WriteCSV(&b))
	require.Equal(t, "'=a,b\n'=1+1,-5\n'+cmd|' /C calc'!A0,-0.5\n'-1+2,\n'@SUM(A1),true\n"+
		"'\t=1,-5\n\"'\r=1\",+1e3\n'＝1,a=1\n,\" =1\"\n",
		b.String())
}
