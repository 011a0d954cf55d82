package analysis

import (
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// tablesRead says where each table is read.
var tablesRead = stages.Visible()

// visibleWithoutHead reports whether a stage is visible as soon as it has committed.
func visibleWithoutHead(p schema.Place) bool {
	for _, stages := range tablesRead.WithoutHead {
		if stages.Include(p) {
			return true
		}
	}
	return false
}
