package compare

import "fmt"

// Words says in a sentence where the record of a run differs from the base's.
func (a AgainstBase) Words(run int) string {
	d := a.Divergence
	switch {
	case d == nil && a.Equal == 0:
		return fmt.Sprintf("A and %s have no finished step in common", Letter(run))
	case d == nil:
		return fmt.Sprintf("A and %s are equal in all that both recorded: %d steps", Letter(run), a.Equal)
	}
	text := fmt.Sprintf("A and %s first differ in step %d, stage %s", Letter(run), d.Step, d.Stage)
	if d.Step == 0 {
		text = fmt.Sprintf("A and %s first differ before step 1, stage %s", Letter(run), d.Stage)
	}
	if d.Turn != nil {
		text += fmt.Sprintf(", turn %d", *d.Turn)
	}
	if d.Table != "" {
		text += ", table " + d.Table
	}
	if d.Table == checkpointTable {
		return text
	}
	if d.OnlyIn != nil {
		return text + ", which only " + Letter(*d.OnlyIn*run) + " has"
	}
	return text + fmt.Sprintf(", row %d", d.Row)
}

// Rows lists the row at fault and its columns, a line each.
func (d Divergence) Rows(run int) []string {
	var out []string
	switch {
	case d.Key[0] != d.Key[1]:
		for side, letter := range []string{Letter(0), Letter(run)} {
			out = append(out, fmt.Sprintf("%s has there %s", letter, orNothing(d.Key[side])))
		}
	case d.Key[0] != "":
		out = append(out, d.Key[0])
	}
	for i, c := range d.Columns {
		if i == mostColumns && len(d.Columns) > mostColumns+1 {
			return append(out, fmt.Sprintf("and %d more columns", len(d.Columns)-mostColumns))
		}
		name := c.Name
		if c.At != nil {
			name += fmt.Sprintf("[%d]", *c.At)
		}
		out = append(out, fmt.Sprintf("%-16s %s → %s", name, Short(c.Values[0]), Short(c.Values[1])))
	}
	return out
}

// mostColumns bounds the columns that texts list.
const mostColumns = 8

func orNothing(key string) string {
	if key == "" {
		return "no row"
	}
	return key
}
