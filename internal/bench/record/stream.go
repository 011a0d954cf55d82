package record

import (
	"fmt"
	"runtime"

	"github.com/ropewalk/ropewalk/schema"
)

// copies is how many steps the first two digits of an id can stand for.
const copies = 100

// streamedBytes is how much raw data is streamed at least, if copies suffice: several row groups.
var streamedBytes = 256 << 20

// memory compares ways of reading one large file, in bytes that are live after a collection of garbage.
type memory struct {
	groups        int
	streamed, all float64 // streamed is the most while the row groups are read one by one
}

// stream makes a file of several row groups and reads it group by group.
func stream(rows []schema.TurnRow) (m memory, err error) {
	data, err := large(rows)
	if err != nil {
		return m, err
	}
	base := live()
	for group, err := range schema.Groups[schema.TurnRow](data) {
		if err != nil {
			return m, err
		}
		m.groups++
		m.streamed = max(m.streamed, live()-base)
		runtime.KeepAlive(group)
	}
	all, err := schema.Decode[schema.TurnRow](data)
	m.all = live() - base
	runtime.KeepAlive(all)
	runtime.KeepAlive(data)
	return m, err
}

// large returns a file that holds the rows under one step after the other.
func large(rows []schema.TurnRow) ([]byte, error) {
	var all []schema.TurnRow
	for step, raw := 0, 0; raw < streamedBytes && step < copies; step++ {
		prefix := fmt.Sprintf("%02d", step)
		for _, r := range rows {
			r.GroupID, r.TrajectoryID = prefix+r.GroupID[len(prefix):], prefix+r.TrajectoryID[len(prefix):]
			all = append(all, r)
			raw += 16*len(r.TokenIDs) + len(r.Response) + len(r.Observation)
		}
	}
	return schema.Encode(all)
}

// live returns the bytes in use on the heap.
func live() float64 {
	runtime.GC()
	runtime.GC() // a pool keeps what it holds for one collection
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
