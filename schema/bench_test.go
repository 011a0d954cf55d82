package schema

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchTurns are 2,000 turns of 680 tokens: 1.36 M tokens, some 24 MB raw.
func benchTurns() []TurnRow {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]TurnRow, 2000)
	for i := range rows {
		const n = 680
		row := TurnRow{GroupID: GroupID(0, i/16), TrajectoryID: TrajectoryID(0, i/16, i%16), ContextTokens: 100,
			TokenIDs: make([]int32, n), LossMask: make([]int32, n),
			LogProbs: make([]float32, n), Entropies: make([]float32, n), Response: fmt.Sprintf("response %d", i),
			Finish: "stop", AnchorHash: "a", PolicyVersion: "v"}
		for j := range n {
			row.TokenIDs[j] = int32(r.ExpFloat64() * 3000)
			if j >= 100 {
				row.LossMask[j], row.LogProbs[j], row.Entropies[j] = 1, -float32(r.ExpFloat64()),
					float32(r.ExpFloat64())
			}
		}
		rows[i] = row
	}
	return rows
}

func BenchmarkEncodeTurns(b *testing.B) {
	rows := benchTurns()
	b.ResetTimer()
	size := 0
	for b.Loop() {
		data, err := Encode(rows)
		if err != nil {
			b.Fatal(err)
		}
		size = len(data)
	}
	b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(size), "bytes")
}

func BenchmarkDecodeTurns(b *testing.B) {
	rows := benchTurns()
	data, err := Encode(rows)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := Decode[TurnRow](data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
