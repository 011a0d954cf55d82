package resample

import (
	"maps"
	"slices"
	"testing"
)

// A group with a mixed row goes as a whole, before any statistic; one row of several versions is enough.
func TestOneVersion(t *testing.T) {
	rows := slices.Concat(rowsOf("a", "+-+-"), rowsOf("b", "++++"), rowsOf("c", "+---"))
	rows[2].Mixed = true
	links := BeforeRules(OneVersion{}, []Link{RejectEqual{}})
	s, err := Chain{Links: links}.Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[Reason]int{MixedVersions: 4, ZeroVariance: 4}; !maps.Equal(s.DroppedBy, want) || s.KeptGroups != 1 {
		t.Errorf("dropped %v, %d groups are left, want %v and 1", s.DroppedBy, s.KeptGroups, want)
	}
	rows[2].Excluded, rows[3].Mixed = true, true // the reason of an excluded row stays
	if s, err = (Chain{Links: links}).Select(rows); err != nil {
		t.Fatal(err)
	}
	if want := map[Reason]int{MixedVersions: 3, Excluded: 1, ZeroVariance: 4}; !maps.Equal(s.DroppedBy, want) {
		t.Errorf("dropped %v, want %v", s.DroppedBy, want)
	}
	if got := (Chain{Links: links}).String(); got != "no mixed groups, then no equal rewards" {
		t.Errorf("the chain is called %q", got)
	}
}

func TestOneVersionFollowsDynamicSampling(t *testing.T) {
	links := BeforeRules(OneVersion{}, []Link{Rounds{DynamicSampling: DynamicSampling{Target: 2}}, RejectEqual{}})
	if err := (Chain{Links: links}).Validate(); err != nil {
		t.Fatal(err)
	}
	if _, ok := links[1].(OneVersion); !ok || len(links) != 3 {
		t.Errorf("links %v", links)
	}
	if links = BeforeRules(OneVersion{}, nil); len(links) != 1 {
		t.Errorf("links %v", links)
	}
}
