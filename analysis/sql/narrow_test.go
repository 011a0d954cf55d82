package sql_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/store/mem"
)

// reads notes the keys that are read.
type reads struct {
	*mem.Store
	mu   sync.Mutex
	keys []string
}

func (r *reads) Get(ctx context.Context, key string) ([]byte, error) {
	r.mu.Lock()
	r.keys = append(r.keys, key)
	r.mu.Unlock()
	return r.Store.Get(ctx, key)
}

// Manifests of runs that a query's conditions leave out are not read, in whatever form it states them. The answers are
// the same as from the whole record.
func TestConditionsOnTheRunNarrowWhatIsRead(t *testing.T) {
	objects := twoRuns(t)
	for query, whole := range map[string]bool{ // whether both runs are read
		"select avg(reward) from rewards where run = 'done' and reward > 0":                     false,
		"select count(*) from rewards where run like 'don%'":                                    false,
		"select count(*) from rewards r join turns t using (run, step) where r.run = 'done'":    false,
		"select count(*) from rewards where run in ('done', 'nowhere')":                         false,
		"with r as (select * from rewards) select count(*) from r where run = 'done'":           false,
		"select count(*) from policies where run = 'done'":                                      false,
		"select count(*) from rewards where run = 'nowhere'":                                    false,
		"select count(*) from rewards where run = 'done' or reward > 0.5":                       true,
		"select count(*) from rewards where run <> 'it''s'":                                     true,
		"select run from rewards where run = 'done' union all select run from turns order by 1": true,
		"select count(*) from rewards r where exists (select 1 from turns where run = 'done')":  true,
		"select run, count(*) from rewards group by run having count(*) > 12":                   true,
		"select count(*) from rewards where run = (select min(run) from runs)":                  true,
	} {
		r := &reads{Store: objects}
		got, err := sql.Query(context.Background(), analysis.New(r), query)
		require.NoError(t, err, query)
		other := false
		for _, key := range r.keys {
			other = other || strings.Contains(key, "run=open/manifests/step=1/") // the catalogue reads others
		}
		require.Equal(t, whole, other, query)
		session, err := sql.Open(t.Context(), analysis.New(objects), nil, query) // reads all runs
		require.NoError(t, err, query)
		want, err := session.Ask(t.Context(), query)
		require.NoError(t, err, query)
		require.NoError(t, session.Close())
		require.Equal(t, want, got, query)
	}
}
