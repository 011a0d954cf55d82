package upkeep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestAStateIsNotedOnce(t *testing.T) {
	t.Parallel()
	objects := mem.New()
	a := NoteState{&stage.Worker{Records: record.Records{Store: objects}}}
	in := api.StateInput{Run: "r", State: "parked", Kind: "no_space", Reason: "update: disk full",
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()}
	for range 2 { // another attempt, whose predecessor's answer was lost
		_, err := a.Execute(t.Context(), &stage.Env{}, in)
		require.NoError(t, err)
	}
	listed, err := objects.List(t.Context(), schema.StatesPrefix)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	text, err := objects.Get(t.Context(), listed[0].Key)
	require.NoError(t, err)
	require.JSONEq(t, `{"state":"parked","kind":"no_space","reason":"update: disk full",`+
		`"at":"2026-01-02T03:04:05.000000Z"}`, string(text))
}
