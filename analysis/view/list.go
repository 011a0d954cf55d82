package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/sql"
)

// List is a page of the trajectories that a filter selects.
type List struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Summary *Summary `json:"summary"`
	All     int      `json:"all"` // trajectories of the index when it was read; later ones may be among the rows
	// Place is the number of rows before the trajectory that was looked for; null if the filter does not select it.
	Place *int64 `json:"place"`
}

// Summary counts all trajectories that a filter selects.
type Summary struct {
	Count   any `json:"count"`
	Reward  any `json:"reward"`  // mean; null without any
	Success any `json:"success"` // share of those with a reward
	Kept    any `json:"kept"`
}

// listed are the columns of a list's rows.
var listed = []string{"part", "step", "group_id", "trajectory_id", "level", "problem", "answer", "gold", "reward",
	"success",
	"verdict", "fate", "turns", "tool_calls", "tool_errors", "statuses", "tokens", "response_tokens", "finish"}

// counted are the columns of the summary.
const counted = "count(*), avg(reward), avg(success::int), count(*) filter (kept)"

// List reads a page of the trajectories that a filter selects.
func (v *Viewer) List(ctx context.Context, f Filter, p Page) (List, error) {
	out := List{Columns: listed, Rows: [][]any{}, All: v.State().of(f.Held).Rows}
	c := f.clause()
	found, err := v.index.Ask(ctx, f.query(c, p), c.args...)
	if err != nil {
		return out, err
	}
	for _, row := range found.Rows {
		out.Rows = append(out.Rows, row[:len(listed)])
	}
	if p.Find != "" {
		if out.Place, err = v.place(ctx, f, c, p.Find); err != nil {
			return out, err
		}
	}
	if len(found.Rows) > 0 {
		out.Summary = summaryOf(found.Rows[0][len(listed):])
		return out, nil
	}
	s, err := v.summary(ctx, c) // nothing passes the filter, or the page is behind the end
	out.Summary = &s
	return out, err
}

// query looks at each row once: for the summary, and for the page's rows, whose order is found among narrow rows. The
// columns of the summary follow those of the list.
func (f Filter) query(c clause, p Page) string {
	key := cmp.Or(f.Sort, "step")
	return fmt.Sprintf(`with hits as materialized (
  select rowid as hit, %q as key, trajectory_id as id, reward, success, kept from %s%s
), summary as (select %s from hits), page as (select hit from hits order by key %s, id limit %d offset %d)
select %s, summary.* from %s, summary where rowid in (select hit from page)%s`,
		key, indexTable, c.where(), counted, f.direction(), p.Limit, p.Offset,
		quotedNames(listed), indexTable, f.order())
}

// place finds a trajectory among those that a filter selects, in their order.
func (v *Viewer) place(ctx context.Context, f Filter, c clause, id string) (*int64, error) {
	query := fmt.Sprintf("select place from (select trajectory_id as id, row_number() over (%s) - 1 as place "+
		"from %s%s) where id = ?", f.order(), indexTable, c.where())
	found, err := v.index.Ask(ctx, query, append(slices.Clone(c.args), id)...)
	if err != nil || len(found.Rows) == 0 {
		return nil, err
	}
	n, ok := found.Rows[0][0].(int64)
	if !ok {
		return nil, fmt.Errorf("find trajectory %q: got %v", id, found.Rows[0][0])
	}
	return &n, nil
}

func summaryOf(row []any) *Summary { return &Summary{row[0], row[1], row[2], row[3]} }

func (v *Viewer) summary(ctx context.Context, c clause) (Summary, error) {
	found, err := v.index.Ask(ctx, "select "+counted+" from "+indexTable+c.where(), c.args...)
	if err != nil {
		return Summary{}, err
	}
	return *summaryOf(found.Rows[0]), nil
}

func quotedNames(names []string) string {
	return `"` + strings.Join(names, `", "`) + `"`
}

// one reads the row of one trajectory.
func (v *Viewer) one(ctx context.Context, id string) (map[string]any, error) {
	names := []string{}
	for _, c := range columns {
		if c.Name != "text" {
			names = append(names, c.Name)
		}
	}
	found, err := v.index.Ask(ctx, "select "+quotedNames(names)+" from "+indexTable+" where trajectory_id = ?", id)
	if err != nil || len(found.Rows) == 0 {
		return nil, err
	}
	return named(found, found.Rows[0]), nil
}

func named(r sql.Result, row []any) map[string]any {
	out := make(map[string]any, len(row))
	for i, c := range r.Columns {
		out[c] = row[i]
	}
	return out
}

// members lists the trajectories of a group.
func (v *Viewer) members(ctx context.Context, group string) ([]string, error) {
	found, err := v.index.Ask(ctx, "select trajectory_id from "+indexTable+" where group_id = ? order by 1", group)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, row := range found.Rows {
		out = append(out, fmt.Sprint(row[0]))
	}
	return slices.Clip(out), nil
}
